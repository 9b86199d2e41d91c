"""A test of `module`, which is on cuda:0, with the batch `x`: it raises where two GPUs give something different from
one, and ends without an error where they give the same.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "What should be equal? Run the module alone, and on two GPUs.",
    "`nn.DataParallel(module, [0, 1])` runs it on two. With one row, one of them has nothing to do.",
    "Some wrong modules raise nothing: compare the numbers, `torch.testing.assert_close(found, expected)`.",
)


class _Scaled(nn.Module):
    """Scales three numbers with a tensor kept in one way or another, made on the GPU that is current."""

    scale: Tensor

    def __init__(self, scale: Sequence[float]) -> None:
        super().__init__()
        self.keep(torch.tensor(scale, device="cuda"))  # noqa: FL001 the mistake itself

    def __repr__(self) -> str:
        return f"<{type(self).__doc__}>"

    def keep(self, scale: Tensor) -> None:
        raise NotImplementedError

    def scale_for(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale_for(x)


class _Buffer(_Scaled):
    """a buffer"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale)

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale


class _Unsaved(_Buffer):
    """a buffer that no checkpoint holds"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale, persistent=False)


class _Weight(_Buffer):
    """a weight"""

    def keep(self, scale: Tensor) -> None:
        self.scale = nn.Parameter(scale)


class _Plain(_Buffer):
    """a plain tensor"""

    def keep(self, scale: Tensor) -> None:
        self.scale = scale


class _Moved(_Plain):
    """a plain tensor that forward moves to its input"""

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale.to(x.device)


class _Listed(_Scaled):
    """a tensor in a list"""

    def keep(self, scale: Tensor) -> None:
        self.scales = [scale]

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scales[0]


class _Function(_Buffer):
    """a lambda made in __init__"""

    def keep(self, scale: Tensor) -> None:
        self.register_buffer("scale", scale)
        self.take = lambda: self.scale

    def scale_for(self, x: Tensor) -> Tensor:
        return self.take()


class _Numbered(_Weight):
    """self.device = "cuda:0\""""

    def keep(self, scale: Tensor) -> None:
        super().keep(scale)
        self.device = scale.device

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.device) * self.scale


class _Guarded(_Plain):
    """a plain tensor that is skipped where it is on a different GPU"""

    def scale_for(self, x: Tensor) -> Tensor:
        return self.scale if self.scale.device == x.device else torch.ones_like(x)


class _Rounded(_Buffer):
    """a buffer, and sums whose rounding depends on the number of rows"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 7 * len(x) - 7 * len(x)  # 7: so that a batch and its halves round differently


class _Mixed(_Buffer):
    """a layer that mixes each row with one from the other end of the batch, as mixup does"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + x.flip(0) / 2)


class _Relative(_Buffer):
    """a layer that measures each row by those beside it while it trains, as batch norm does"""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.amax(0) if self.training else x)


@dataclass(frozen=True)
class _OwnModule(Trial):
    """Each test gets a module of its own: what one test has done to it is not handed to the next."""

    def call(self, function: Callable[..., Any]) -> Any:
        return Trial(copy.deepcopy(self.args)).call(function)


_RIGHT = (_Buffer, _Weight, _Unsaved, _Moved, _Rounded)
_WRONG = (_Plain, _Listed, _Function, _Numbered, _Guarded, _Mixed, _Relative)


def same_on_two_gpus(module: nn.Module, x: Tensor) -> None:
    expected = module(x)
    found = nn.DataParallel(module, [0, 1])(x)
    torch.testing.assert_close(found, expected)


def cases(random: Random) -> Sequence[Case]:
    """Fixed: two right and two wrong ones. Drawn: all of them in an order of its own, with other scales and rows."""
    kinds = [*_RIGHT, *_WRONG]
    fixed = [_Buffer, _Plain, _Weight, _Guarded]
    drawn = random.sample(kinds, len(kinds))
    scales = [[2.0, 3.0, 4.0]] * len(fixed) + [[round(random.uniform(2, 9), 1) for _ in range(3)] for _ in drawn]
    return [
        _OwnModule((kind(scale), torch.rand(random.randint(4, 9), 3, device="cuda")))  # noqa: FL001 the case's GPU
        for kind, scale in zip([*fixed, *drawn], scales, strict=True)
    ]


@wrong
def passes_for_every_module(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that passes for every module, right or wrong. One that uses a single GPU or a single row
    does, and so does one that looks only at weights and buffers, because those always follow their replica.

    Source: NVIDIA/apex pull request 1711, 2023, on a parallel test that ran on a single GPU
    """
    torch.testing.assert_close(nn.DataParallel(module, [0])(x), module(x))


@also(passes_for_every_module)
def one_row(module: nn.Module, x: Tensor) -> None:
    torch.testing.assert_close(nn.DataParallel(module, [0, 1])(x[:1]), module(x[:1]))


@also(passes_for_every_module)
def parameters_of_replicas(module: nn.Module, x: Tensor) -> None:
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for weight in replica.parameters():
            assert weight.get_device() == gpu


@also(passes_for_every_module)
def state_of_replicas(module: nn.Module, x: Tensor) -> None:
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for value in (*replica.parameters(), *replica.buffers(), *replica.state_dict().values()):
            assert value.get_device() == gpu


@wrong
def shapes_only(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that no number can make fail, such as one that compares shapes, or that returns a
    comparison without an `assert`. A module that skips its scale on cuda:1 gives the right shapes.

    Source: the counter of pytorch/pytorch issue 2864, 2017: every shape is right, and nothing raises
    """
    found = nn.DataParallel(module, [0, 1])(x)
    assert found.shape == module(x).shape


@also(shapes_only)
def runs_only(module: nn.Module, x: Tensor) -> None:
    nn.DataParallel(module, [0, 1])(x)


@also(shapes_only)
def returns_the_comparison(module: nn.Module, x: Tensor) -> bool:
    return torch.allclose(nn.DataParallel(module, [0, 1])(x), module(x))


@wrong
def bit_for_bit(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that compares bit for bit. A right module may round differently where a GPU has fewer
    rows, so leave room for the last digits: `torch.testing.assert_close`.

    Source: asked about in pytorch/pytorch issue 14007, 2018
    """
    assert torch.equal(nn.DataParallel(module, [0, 1])(x), module(x))


@wrong
def in_evaluation(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that never trains a part of the batch: it calls `module.eval()`, or it gives the second
    GPU all rows. One of the modules is wrong in training alone, because it measures each row by those on the same GPU,
    as batch norm does (notebook 02). Test the mode in which a module is used, and divide the batch as `nn.DataParallel`
    does.
    """
    same_on_two_gpus(module.eval(), x)


@also(in_evaluation)
def bits_in_evaluation(module: nn.Module, x: Tensor) -> None:
    bit_for_bit(module.eval(), x)


@also(in_evaluation)
def second_replica(module: nn.Module, x: Tensor) -> None:
    found = nn.parallel.replicate(module, [0, 1])[1](x.to("cuda:1"))
    torch.testing.assert_close(found.to("cuda:0"), module(x))


@wrong
def one_number_of_all_rows(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that compares a sum or a mean. One of the modules mixes rows, of which a GPU has only its
    own, and the sum over all rows is the same in any order.
    """
    torch.testing.assert_close(nn.DataParallel(module, [0, 1])(x).sum(), module(x).sum())


@wrong
def attributes_only(module: nn.Module, x: Tensor) -> None:
    """this is how a test ends that looks at the tensors among the attributes. It misses those in a list, a device and a
    function, and it fails where `forward` moves the tensor itself.

    Source: tensors in a list that stay behind: pytorch/pytorch issue 29807, 2019
    """
    for gpu, replica in enumerate(nn.parallel.replicate(module, [0, 1])):
        for value in vars(replica).values():
            assert not isinstance(value, Tensor) or value.get_device() == gpu
