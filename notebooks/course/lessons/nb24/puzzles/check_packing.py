"""A test: it makes branches with `branch()`, packs them with `pack_blocks(blocks)`, and raises an AssertionError if the
packed module does not compute what they compute. It passes on right packings and fails on wrong ones.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor, nn

from course.kit import post_002
from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from frcnn_lite.layers import pack_serial_blocks, pack_state_dicts

hints = (
    "Compare the packed module with `torch.cat([block(x) for block in blocks], dim=1)`. Which tensors of a new branch "
    "are the same in every branch? A packing that mixes those up goes unseen.",
    "Fill every tensor of every branch with numbers of its own (running variances with positive ones). In which mode "
    "are running statistics used?",
    "`for tensor in block.state_dict().values(): tensor.uniform_(0.5, 1.5)` where `tensor.is_floating_point()`, then "
    "`.eval()` on all modules, and `torch.testing.assert_close`.",
)

Branch = Callable[[], nn.Module]
State = dict[str, Tensor]
CONFIG = post_002.BottleneckConfig(8, 4, 8)


def _branch() -> nn.Module:
    return post_002.Bottleneck(CONFIG).double()


def _dealt_out(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts), dim=1).flatten(0, 1)


def _packed(change: Callable[[State, list[State], State], State], blocks: Sequence[nn.Module]) -> nn.Module:
    """A grouped module with what `change` makes of the right state, those of the branches, and a new one."""
    grouped = post_002.Bottleneck(CONFIG, groups=len(blocks)).double()
    states = [block.state_dict() for block in blocks]
    fresh = {name: tensor.clone() for name, tensor in grouped.state_dict().items()}
    grouped.load_state_dict(change(pack_state_dicts(states), states, fresh))
    return grouped.train(blocks[0].training)


def _rounded_differently(packed: State, states: list[State], fresh: State) -> State:
    return {name: tensor * (1 + 1e-13) if tensor.is_floating_point() else tensor for name, tensor in packed.items()}


def _filters_dealt_out(packed: State, states: list[State], fresh: State) -> State:
    return packed | {name: _dealt_out([s[name] for s in states]) for name in packed if "conv" in name}


def _norms_dealt_out(packed: State, states: list[State], fresh: State) -> State:
    norms = [name for name, tensor in packed.items() if "bn" in name and tensor.ndim]
    return packed | {name: _dealt_out([s[name] for s in states]) for name in norms}


def _statistics_left_out(packed: State, states: list[State], fresh: State) -> State:
    return packed | {name: tensor for name, tensor in fresh.items() if "running" in name}


def _scales_left_out(packed: State, states: list[State], fresh: State) -> State:
    return packed | {name: tensor for name, tensor in fresh.items() if "bn" in name and "running" not in name}


def _last_branch_first(packed: State, states: list[State], fresh: State) -> State:
    return pack_state_dicts(states[::-1])


def _filters_moved(name: str, by: int, packed: State, states: list[State], fresh: State) -> State:
    return packed | {name: packed[name].roll(by, dims=0)}


def cases(random: Random) -> Sequence[Case]:
    """Two right packings and six wrong ones."""
    layer, by = random.choice(("conv1", "conv2", "conv3")), random.randint(1, 3)
    packings: dict[str, Callable[[Sequence[nn.Module]], nn.Module]] = {
        "right": lambda blocks: pack_serial_blocks(blocks, post_002.Bottleneck(CONFIG, groups=len(blocks))),
        "right, rounded differently": partial(_packed, _rounded_differently),
        "filters dealt out in turn": partial(_packed, _filters_dealt_out),
        "norms dealt out in turn": partial(_packed, _norms_dealt_out),
        "running statistics left out": partial(_packed, _statistics_left_out),
        "scales and shifts left out": partial(_packed, _scales_left_out),
        "the last branch first": partial(_packed, _last_branch_first),
        f"filters of {layer} moved by {by}": partial(_packed, partial(_filters_moved, f"{layer}.weight", by)),
    }
    return [Trial((Program(words, pack), Program("a branch", _branch))) for words, pack in packings.items()]


def check_packing(pack_blocks: Callable[[Sequence[nn.Module]], nn.Module], branch: Branch) -> None:
    blocks = [branch() for _ in range(3)]
    for block in blocks:
        for tensor in block.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    packed = pack_blocks(blocks)
    for module in (packed, *blocks):
        module.eval()
    x = torch.rand(2, 8, 5, 5, dtype=torch.float64)  # noqa: FL002 exercises are on the CPU
    torch.testing.assert_close(packed(x), torch.cat([block(x) for block in blocks], dim=1))


def _fill(blocks: Sequence[nn.Module], which: str = "") -> None:
    for block in blocks:
        for name, tensor in block.state_dict().items():
            if tensor.is_floating_point() and which in name:
                tensor.uniform_(0.5, 1.5)


def _agree(blocks: Sequence[nn.Module], packed: nn.Module, training: bool, tolerance: float = 1e-7) -> None:
    for module in (packed, *blocks):
        module.train(training)
    x = torch.rand(2, 8, 5, 5, dtype=torch.float64)  # noqa: FL002 exercises are on the CPU
    loop = torch.cat([block(x) for block in blocks], dim=1)
    torch.testing.assert_close(packed(x), loop, rtol=tolerance, atol=tolerance)


@wrong
def never_fails(pack_blocks, branch):
    """this is how a test ends that looks at names or shapes, or that *returns* whether the results agree. All packings
    have the same names and shapes; compare what the modules compute, with `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    blocks = [branch() for _ in range(3)]
    assert pack_blocks(blocks).conv2.weight.shape[0] == 3 * blocks[0].conv2.weight.shape[0]


@wrong
def new_norms(pack_blocks, branch):
    """this is how a test ends whose branches have BatchNorms as they are made. Their scales are all 1 and their shifts
    0, and so are the running variances and means, so it makes no difference where they are put.
    """
    blocks = [branch() for _ in range(3)]
    _agree(blocks, pack_blocks(blocks), training=False)


@also(new_norms)
def _(pack_blocks, branch):
    blocks = [branch() for _ in range(3)]
    _agree(blocks, pack_blocks(blocks), training=True)


@wrong
def statistics_of_the_batch(pack_blocks, branch):
    """this test does not see that the running statistics were left out. They are not used in training mode, and
    in evaluation it takes statistics that differ from those of a new branch.
    """
    blocks = [branch() for _ in range(3)]
    _fill(blocks)
    _agree(blocks, pack_blocks(blocks), training=True)


@wrong
def scales_as_they_are_made(pack_blocks, branch):
    """the running statistics of these branches differ, and their scales and shifts are still 1 and 0. Training changes
    those as well, and a packing that leaves them out passes.
    """
    blocks = [branch() for _ in range(3)]
    _fill(blocks, "running")
    _agree(blocks, pack_blocks(blocks), training=False)


@wrong
def copies_of_one_branch(pack_blocks, branch):
    """this is how a test ends whose branches are all equal, so that it does not see which of them comes first. A
    generator that is seeded before each branch makes copies, too.
    """
    first = branch()
    _fill([first])
    blocks = [first, copy.deepcopy(first), copy.deepcopy(first)]
    _agree(blocks, pack_blocks(blocks), training=False)


@also(copies_of_one_branch)
def _(pack_blocks, branch):
    first = branch()
    blocks = [first, copy.deepcopy(first), copy.deepcopy(first)]
    _agree(blocks, pack_blocks(blocks), training=False)


@wrong
def one_branch(pack_blocks, branch):
    """this is how a test ends that packs a single branch: there is no order to get wrong."""
    blocks = [branch()]
    _fill(blocks)
    _agree(blocks, pack_blocks(blocks), training=False)


@wrong
def to_the_last_bit(pack_blocks, branch):
    """this is how a test ends that asks for equal bits. A right packing adds in its own order, and rounds differently:
    use `torch.testing.assert_close`.
    """
    blocks = [branch() for _ in range(3)]
    _fill(blocks)
    _agree(blocks, pack_blocks(blocks), training=False, tolerance=0)
