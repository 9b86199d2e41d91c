"""Exercises of notebook 10: reduce_scatter out of reduce, the memory of a sharded step, a test for the optimizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.utils._python_dispatch import TorchDispatchMode

from course.kit.learn.exercise import TODO, Case, Ended, Exercise, Mistake
from course.kit.ranks import RanksFailed, ranks

CALLED = "reduce_scatter, which is not allowed"
LIMIT = 3.0  # seconds after which ranks that wait for each other end an answer
Build = Callable[[], tuple[nn.Module, torch.optim.Optimizer]]
_known: dict[tuple[str, str], Any] = {}  # results of this file's own answers, which stay what they are


@dataclass(frozen=True)
class Failed:
    """How a call on ranks failed. `words` are not compared: which rank fails first is a matter of chance."""

    how: str
    words: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"an error ({self.words})"


class _Called(TorchDispatchMode):
    """Notes whether reduce_scatter is called, by any of its names."""

    reduce_scatter = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.reduce_scatter |= "reduce_scatter" in str(func)
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class RanksCase(Case):
    """A call in two processes: the result is what each rank returned."""

    def on_rank(self, function: Callable[..., Any]) -> Any:
        """What a rank does, and its result as numbers or words."""
        own = torch.tensor(self.args[0][distributed.get_rank()]).cuda()  # noqa: FL001 the rank's own
        with _Called() as called:
            returned = function(own)
        if called.reduce_scatter:
            return CALLED
        if isinstance(returned, Tensor) and returned.device != own.device:
            return f"a tensor on {returned.device}, and not on {own.device}"
        return returned.tolist() if isinstance(returned, Tensor) else returned

    def call(self, function: Callable[..., Any]) -> Any:
        if function.__module__ != __name__:
            return self._run(function)
        key = (function.__name__, repr(self.args))
        if key not in _known:
            _known[key] = self._run(function)
        return _known[key]

    def _run(self, function: Callable[..., Any]) -> Any:
        try:
            results = ranks(2, limit=LIMIT)(self.on_rank)(function)
        except RanksFailed as failed:
            if "raised NotImplementedError" in str(failed):  # a starter that is not filled in
                raise NotImplementedError from None
            apart = failed.positions or "simulated only" in str(failed)
            words = str(failed).splitlines()[0]
            return Failed("ranks apart" if apart else words.split("raised ")[-1].split(":")[0], words)
        return TODO if TODO in results else self.judged(results)

    def judged(self, results: list[Any]) -> Any:
        """The result of the call, from those of the ranks."""
        return results

    def show(self, name: str) -> str:
        return f"{name} of {' on rank 0 and of '.join(map(str, map(list, self.args[0])))} on rank 1"


def reduce_scattered(whole: Tensor) -> Tensor:
    parts = [part.clone() for part in whole.chunk(distributed.get_world_size())]
    for rank, part in enumerate(parts):
        distributed.reduce(part, rank)
    return parts[distributed.get_rank()]


def _own_part(whole: Tensor) -> Tensor:
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]


def _calls_it(whole: Tensor) -> Tensor:
    part = torch.empty_like(_own_part(whole))
    distributed.reduce_scatter_tensor(part, whole)
    return part


def _is_called(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(isinstance(ranks_of, list) and CALLED in ranks_of for ranks_of in given)


def _averaged(whole: Tensor) -> Tensor:
    return reduce_scattered(whole) / distributed.get_world_size()


def _averaged_in_whole_numbers(whole: Tensor) -> Tensor:
    return reduce_scattered(whole) // distributed.get_world_size()


def _only_own(whole: Tensor) -> Tensor:
    part = _own_part(whole).clone()
    distributed.reduce(part, distributed.get_rank())
    return part


def _scatter_cases(random: Random) -> Sequence[Case]:
    fixed = ((1, 2, 3, 4), (10, 20, 30, 40))
    sizes = [2, random.choice([4, 6])]
    drawn = [tuple(tuple(random.randint(0, 99) for _ in range(size)) for _ in range(2)) for size in sizes]
    return [RanksCase((values,)) for values in (fixed, *drawn)]


def fullest_rank(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    largest = max(rows * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * largest)


def _nothing_whole(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    return 16 * sum(-(-rows // ranks) * columns for rows, columns in shapes)


def _all_whole(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * sum(rows * columns for rows, columns in shapes))


def _average_rank(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * (sum(numbers) // ranks) + 2 * max(numbers))


def _exact_share(shapes: Sequence[tuple[int, int]], ranks: int) -> float:
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(numbers) / ranks + 2 * max(numbers))


def _each_divided(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(number // ranks for number in numbers) + 2 * max(numbers))


def _flat_shards(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    """The rule of FSDP1: all numbers of a layer in a row, and the last rank padded."""
    numbers = [rows * columns for rows, columns in shapes]
    return 4 * (4 * sum(-(-number // ranks) for number in numbers) + 2 * max(numbers))


def _near_an_even_share(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Divided evenly, with any rounding."""
    pairs = zip(cases, given, strict=True)
    return all(abs(mine - _exact_share(*case.args)) <= 16 * len(case.args[0]) for case, mine in pairs)


def _rounded_down(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(rows // ranks * columns for rows, columns in shapes)
    return 4 * (4 * kept + 2 * max(rows * columns for rows, columns in shapes))


def _no_whole_gradient(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (4 * kept + max(rows * columns for rows, columns in shapes))


def _twelve_bytes(shapes: Sequence[tuple[int, int]], ranks: int) -> int:
    kept = sum(-(-rows // ranks) * columns for rows, columns in shapes)
    return 4 * (3 * kept + 2 * max(rows * columns for rows, columns in shapes))


def _memory_cases(random: Random) -> Sequence[Case]:
    fixed = [([(512, 512)] * 8, 4), ([(10, 3), (4, 10)], 4), ([(1000, 16), (16, 16), (2, 16)], 8)]
    drawn = []
    for _ in range(20):
        shapes = [(random.randint(1, 40), random.randint(1, 40)) for _ in range(random.randint(1, 5))]
        drawn.append((shapes, random.randint(2, 8)))
    return [Case(arguments) for arguments in [*fixed, *drawn]]


@dataclass(frozen=True)
class Program:
    """A `build` for the reader's test. first, late: the layers that the optimizer got too early, or after a forward."""

    name: str
    lr: float
    first: tuple[int, ...] = ()
    late: bool = False
    groups: bool = False
    biases: bool = True

    def __call__(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
        early = {k: list(net[k].parameters()) for k in self.first}
        fully_shard(net[0])
        fully_shard(net)
        if self.late:
            net(torch.zeros(1, 8, device="cuda"))
        taken = [early.get(k) or list(layer.parameters()) for k, layer in enumerate(net)]
        taken = [[one for one in some if self.biases or one.ndim > 1] for some in taken]
        groups = [{"params": some} for some in taken] if self.groups else [*taken[0], *taken[1]]
        return net, torch.optim.SGD(groups, lr=self.lr)

    def __repr__(self) -> str:
        return f"<{self.name}, lr={self.lr}>"


class RanksTrial(RanksCase):
    """A right or a wrong program for a test that the reader writes, which runs on every rank."""

    def on_rank(self, function: Callable[..., Any]) -> Any:
        try:
            returned = function(self.args[0])
        except NotImplementedError:
            raise
        except Exception as error:
            return Ended(False, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        return returned if returned is TODO else Ended(True)

    def judged(self, results: list[Any]) -> Any:
        return next((ended for ended in results if not ended.passed), results[0])

    def show(self, name: str) -> str:
        return Case.show(self, name)


def optimizer_trains(build: Build) -> None:
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    before = [parameter.to_local().clone() for parameter in net.parameters()]  # type: ignore[attr-defined]
    optimizer.step()
    for parameter, old in zip(net.parameters(), before, strict=True):
        assert not parameter.to_local().equal(old)  # type: ignore[attr-defined]


def _runs(build: Build) -> None:
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    optimizer.step()


def _has_gradients(build: Build) -> None:
    net, _ = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def _loss_changes(build: Build) -> None:
    net, optimizer = build()
    x = torch.ones(2, 8, device="cuda")
    before = net(x).square().sum()
    before.backward()
    optimizer.step()
    assert net(x).square().sum() != before


def _one_parameter(build: Build) -> None:
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    before = net[1].weight.to_local().clone()  # type: ignore[index,operator,union-attr]
    optimizer.step()
    assert not net[1].weight.to_local().equal(before)  # type: ignore[index,operator,union-attr]


def _same_memory(build: Build) -> None:
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    before = [parameter.to_local().detach() for parameter in net.parameters()]  # type: ignore[attr-defined]
    optimizer.step()
    for parameter, old in zip(net.parameters(), before, strict=True):
        assert not parameter.to_local().equal(old)  # type: ignore[attr-defined]


def _always_fails(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """The right programs by an assertion, the wrong ones in any way."""
    pairs = zip(cases, given, strict=True)
    asserted = (one.why.startswith("AssertionError") for case, one in pairs if case.args[0].name.startswith("a right"))
    return not any(one.passed for one in given) and all(asserted)


def _trials(random: Random) -> Sequence[Case]:
    lr = random.randint(1, 99) / 1000
    programs = [
        Program("a right program", lr),
        Program("the optimizer made first", lr, first=(0, 1)),
        Program("the parameters of the last layer taken first", lr, first=(1,), groups=True),
        Program("the parameters of the first layer taken first", lr, first=(0,), groups=True),
        Program("the optimizer made after a forward", lr, late=True),
        Program("an optimizer without the biases", lr, biases=False),
        Program("a right program with two groups", lr, groups=True),
    ]
    return [RanksTrial((program,)) for program in programs]


EXERCISES = (
    Exercise(
        key="10.reduce_scattered",
        task="Every rank calls it with a tensor of its own, all of one length that the ranks divide evenly. Add them "
        "up, and return on rank r the r-th part of the sum. `reduce_scatter` itself is not allowed.",
        reference=reduce_scattered,
        cases=_scatter_cases,
        hints=(
            "Cut the tensor into as many parts as there are ranks: `whole.chunk(...)`.",
            "`distributed.reduce(part, rank)` adds `part` of all ranks up, in place, on that one rank. "
            "All ranks have to call it, for every part and in the same order.",
            "Take copies of the parts, so that `whole` stays as it is, call `reduce` for each of them with its number, "
            "and return the part with your own number.",
        ),
        mistakes=(
            Mistake(
                "reduce_scatter itself",
                "you called reduce_scatter. Write what it does with other collectives, such as `reduce`.",
                answers=(_calls_it,),
                recognise=_is_called,
            ),
            Mistake(
                "not added",
                "this is the rank's own part of its own tensor. The parts of the other ranks are missing.",
                "each rank kept its own share of a norm in pytorch/torchtitan issue 766, 2025",
                answers=(_own_part,),
            ),
            Mistake(
                "divided",
                "this is the sum, divided by the number of ranks. reduce_scatter adds up; that FSDP averages its "
                "gradients is a step of its own, `scattered` in the notebook.",
                "vllm-project/vllm pull request 33088, 2026, puts a sum where an average was",
                answers=(_averaged, _averaged_in_whole_numbers),
            ),
            Mistake(
                "each its own",
                "this is how ranks end that call reduce for their own part alone: rank 0 sends to rank 0 while "
                "rank 1 sends to rank 1. All ranks have to call it for every part.",
                "ranks that called different numbers of collectives in PrimeIntellect-ai/prime-rl issue 2515, 2026",
                answers=(_only_own,),
            ),
        ),
    ),
    Exercise(
        key="10.fullest_rank",
        task="Bytes that the fullest of `ranks` ranks needs in a step of AdamW in float32, activations not counted: "
        "its rows of all weights with their gradients and the optimizer's two numbers for each, and the largest layer, "
        "whole, with its whole gradient. `shapes` are the shapes of the weights, one for each layer.",
        reference=fullest_rank,
        cases=_memory_cases,
        hints=(
            "How many rows of a weight with 10 rows does rank 0 keep when there are 4 ranks?",
            "`chunk` rounds up: 3. Four numbers are kept for every weight in those rows: the weight itself, its "
            "gradient and two of AdamW.",
            "Add the numbers of the largest whole weight twice, and multiply everything by 4 bytes.",
        ),
        mistakes=(
            Mistake(
                "nothing whole",
                "these are the bytes without the layer that computes. It needs its weight whole, and it makes a "
                "whole gradient.",
                "memory that did not fall as expected in facebookresearch/fairscale issue 1050, 2022",
                answers=(_nothing_whole,),
            ),
            Mistake(
                "all layers whole",
                "these are the bytes of layers that are all whole at the same time, as under a single "
                "`fully_shard(net)`.",
                "a run without a wrapping policy in huggingface/accelerate issue 3474, 2025",
                answers=(_all_whole,),
            ),
            Mistake(
                "the average rank",
                "these are the bytes of numbers that are divided evenly, as FSDP1 did with all numbers of a layer "
                "in a row. Here whole rows are dealt out, and the first ranks get the larger share.",
                "weights whose rows the ranks do not divide in pytorch/pytorch issue 136228, 2024",
                answers=(_average_rank, _exact_share, _each_divided, _flat_shards),
                recognise=_near_an_even_share,
            ),
            Mistake(
                "rounded down",
                "these are the bytes when the rows of a rank are rounded down. `chunk` rounds up: of 10 rows the "
                "first of four ranks gets 3.",
                answers=(_rounded_down,),
            ),
            Mistake(
                "no whole gradient",
                "these are the bytes without one gradient: backward makes the gradient of the whole layer, and "
                "only then are its parts dealt out. For that moment the weight and its gradient are both there, "
                "whole.",
                answers=(_no_whole_gradient,),
            ),
            Mistake(
                "12 bytes",
                "these are 12 bytes for every weight. The weight, its gradient and AdamW's two numbers are four "
                "times 4 bytes, 16.",
                answers=(_twelve_bytes,),
            ),
        ),
    ),
    Exercise(
        key="10.optimizer_trains",
        task="A test, run on every rank: `build()` returns a net for rows of 8 numbers, sharded, and its optimizer. "
        "Raise if a step of the optimizer leaves a parameter of the net as it was.",
        reference=optimizer_trains,
        cases=_trials,
        hints=(
            "Compare the net's parameters before and after `optimizer.step()`, all of them.",
            "`parameter.to_local()` is the part that this rank keeps. Clone it: `step` writes into it.",
            "Build, call the net with random rows on 'cuda', call backward, keep clones of all parts, call "
            "`optimizer.step()`, and assert for each part that it is not equal to its clone.",
        ),
        mistakes=(
            Mistake(
                "it runs",
                "this is how a test ends that asks only whether a step runs, or whether the net has gradients. "
                "Both are so where the optimizer holds tensors that the net has left behind: it finds no gradient "
                "in those and skips them.",
                "a loop that runs and trains nothing in huggingface/accelerate pull request 3394, 2025",
                answers=(_runs, _has_gradients),
            ),
            Mistake(
                "compared with itself",
                "this test fails on every program, the right ones too. Either what it kept has changed as well: "
                "`.detach()` and `.to_local()` give the same memory again, and `step` writes into it, so keep a "
                "`.clone()`. Or its rows leave some parameter without a gradient, as rows of zeros do.",
                "shivram1987/diffGrad issue 2, 2020, where a gradient was kept so",
                answers=(_same_memory,),
                recognise=_always_fails,
            ),
            Mistake(
                "one parameter",
                "this is how a test ends that looks at the weight of the last layer alone. Look at all parameters.",
                answers=(_one_parameter,),
            ),
            Mistake(
                "the loss changes",
                "this is how a test ends that compares the loss. It changes as soon as one layer learns; the "
                "other may stay as it was.",
                '"only some parameters might be impacted", pytorch/pytorch issue 149205, 2025',
                answers=(_loss_changes,),
            ),
        ),
    ),
)
