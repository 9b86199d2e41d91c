"""Exercises of notebook 07: a training step of several ranks, a test for a sampler, a batch norm over ranks."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed, nn
from torch.distributed.nn.functional import all_gather, all_reduce
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector
from torch.optim import SGD, Adam, Optimizer
from torch.utils.data import DistributedSampler

from course.kit.learn.exercise import TODO, Case, Exercise, Mistake, Trial
from course.kit.ranks import RanksFailed, ranks

LEAF = re.compile("leaf Variable that requires grad")  # autograd refuses to change a parameter in place
WRAPPED = "wrapped in DistributedDataParallel"
LIMIT = 3.0  # seconds in a collective after which ranks count as waiting for each other
Rows = Sequence[Sequence[float]]
_known: dict[tuple[str, str], Any] = {}  # what the answers of this file give, which starts processes once


@dataclass(frozen=True)
class OnRanks(Case):
    """A call in two processes, a GPU each: the result is made of what the ranks return."""

    def on_rank(self, function: Callable[..., Any]) -> Any:
        raise NotImplementedError

    def call(self, function: Callable[..., Any]) -> Any:
        if getattr(function, "__module__", "") != __name__:
            return self._run(function)
        key = (function.__qualname__, repr(self.args))
        if key not in _known:
            _known[key] = self._run(function)
        return _known[key]

    def _run(self, function: Callable[..., Any]) -> Any:
        try:
            return self.on_ranks(function)
        except RanksFailed as failed:
            if "raised NotImplementedError" in str(failed):  # a starter that is not filled in
                raise NotImplementedError from None
            raise

    def on_ranks(self, function: Callable[..., Any]) -> Any:
        given = ranks(2, limit=LIMIT)(_on_rank)(self, function)
        return TODO if TODO in given else self.joined(given)

    def joined(self, given: list[Any]) -> Any:
        return given


def _on_rank(case: OnRanks, function: Callable[..., Any]) -> Any:
    return case.on_rank(function)


# 07.train_step


@dataclass(frozen=True)
class Trained:
    """What two ranks hold after two steps. `seen` is not compared: what else there is to tell mistakes apart."""

    weights: list[list[float]]
    seen: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    error: str = ""

    def __repr__(self) -> str:
        if self.error:
            return f"an error: {self.error}"
        return " and ".join(
            f"the weights [{', '.join(f'{weight:.3f}' for weight in own)}] on rank {rank}"
            for rank, own in enumerate(self.weights)
        )


class _Steps(OnRanks):
    """args: the kind of optimizer, and for each rank its rows, a list of (two pixels, target)."""

    def on_rank(self, function: Callable[..., Any]) -> Any:
        kind, parts = self.args
        rows = torch.tensor(parts[distributed.get_rank()], dtype=torch.float64).cuda()  # noqa: FL001 the rank's own
        net = nn.Linear(2, 1, dtype=torch.float64).cuda()  # noqa: FL001 the rank's own
        for parameter in net.parameters():
            nn.init.constant_(parameter, 0.5)
            parameter.grad = torch.full_like(parameter, 2.0 + distributed.get_rank())  # of a step before
        optimizer: Optimizer = {"SGD": SGD, "Adam": Adam}[kind](net.parameters(), lr=0.1)
        sent: list[bool] = []  # whether what is handed to all_reduce is a result that backward could go through
        original = distributed.all_reduce

        def note(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            sent.append(tensor.grad_fn is not None)
            return original(tensor, *args, **kwargs)

        def refuse(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError(WRAPPED)

        distributed.all_reduce = note
        DistributedDataParallel.__init__ = refuse  # type: ignore[method-assign]
        for _ in range(2):
            try:
                if function(net, optimizer, rows[:, :2], rows[:, 2:]) is TODO:
                    return TODO
            except RuntimeError as error:
                if not (LEAF.search(str(error)) or str(error) == WRAPPED):
                    raise
                return str(error)
        gradients = [None if parameter.grad is None else parameter.grad.tolist() for parameter in net.parameters()]
        return parameters_to_vector(net.parameters()).tolist(), gradients, any(sent)

    def joined(self, given: list[Any]) -> Trained:
        if error := next((one for one in given if isinstance(one, str)), ""):
            return Trained([], error=error)
        weights, gradients, reduced = zip(*given, strict=True)
        return Trained(list(weights), (gradients, any(reduced)))

    def show(self, name: str) -> str:
        kind, parts = self.args
        return f"{name}(net, {kind.lower()}, x, y), twice, with {len(parts[0])} rows on each of two ranks,"


def train_step(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()
    optimizer.step()


def _alone(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()


def _not_divided(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
    optimizer.step()


def _loss_reduced(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    distributed.all_reduce(loss)
    loss.backward()
    optimizer.step()


def _loss_averaged(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    distributed.all_reduce(loss)
    (loss / distributed.get_world_size()).backward()
    optimizer.step()


def _too_late(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    _alone(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()


def _weights_averaged(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    _alone(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter.data)
        parameter.data /= distributed.get_world_size()


def _never_zeroed(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    F.mse_loss(net(x), y).backward()
    for parameter in net.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()
    optimizer.step()


def _zeroed_at_the_end(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    _never_zeroed(net, optimizer, x, y)
    optimizer.zero_grad()


def _one_parameter(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    distributed.all_reduce(net.weight.grad)
    net.weight.grad /= distributed.get_world_size()
    optimizer.step()


def _with_ddp(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    ddp = DistributedDataParallel(net)
    _alone(ddp, optimizer, x, y)


def _weights_averaged_under_autograd(net: Any, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    _alone(net, optimizer, x, y)
    for parameter in net.parameters():
        distributed.all_reduce(parameter)
        parameter /= distributed.get_world_size()


def _refused_by_autograd(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(LEAF.search(trained.error) for trained in given)


def _wrapped(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(trained.error == WRAPPED for trained in given)


def _through_the_loss(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(trained.seen[1] for trained in given)


def _equal_gradients_and_other_weights(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    gradients = [trained.seen[0] for trained in given]
    return all(None not in one and one == other for one, other in gradients) and all(
        trained.weights[0] != trained.weights[1] for trained in given
    )


def _step_cases(random: Random) -> Sequence[Case]:
    def rows(count: int) -> list[list[list[float]]]:
        return [[[float(random.randint(-3, 3)) for _ in range(3)] for _ in range(count)] for _ in range(2)]

    fixed = [[[1.0, 0.0, 2.0], [1.0, 1.0, 0.0]], [[0.0, 1.0, 1.0], [1.0, -1.0, 3.0]]]
    return [_Steps(("SGD", fixed)), _Steps(("Adam", rows(3))), _Steps(("SGD", rows(random.randint(2, 5))))]


def _same_weights(given: Any, expected: Trained) -> bool:
    pairs = zip(chain(*given.weights), chain(*expected.weights), strict=True)
    return all(abs(mine - right) < 1e-6 for mine, right in pairs)


# 07.check_rows

ROWS = 12
Deal = Callable[[int, int, int], Sequence[int]]


@dataclass(frozen=True)
class Program:
    """Which of the twelve rows a rank sees in an epoch, in its order; a test calls it like a function."""

    name: str
    deal: Deal

    def __call__(self, rank: int, world_size: int, epoch: int) -> list[int]:
        return [int(row) for row in self.deal(rank, world_size, epoch)]

    def __repr__(self) -> str:
        return f"<program: {self.name}>"


def _sampled(rank: int, world_size: int, epoch: int, seed: int = 0) -> Sequence[int]:
    sampler: DistributedSampler[int] = DistributedSampler(range(ROWS), world_size, rank, seed=seed)  # type: ignore[arg-type]
    sampler.set_epoch(epoch)
    return list(sampler)


def _shuffled(epoch: int) -> list[int]:
    return torch.randperm(ROWS, generator=torch.Generator().manual_seed(epoch)).tolist()


def _in_blocks(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    each = ROWS // world_size
    return _shuffled(epoch)[rank * each : (rank + 1) * each]


def _own_half(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return [row for row in _shuffled(epoch) if row % world_size == rank]


def _one_rank_forgets(who: int, rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return _sampled(rank, world_size, 0 if rank == who else epoch)


def _rows_left_out(rank: int, world_size: int, epoch: int) -> Sequence[int]:
    return _sampled(rank, world_size, epoch)[:-1]


def _programs(random: Random) -> Sequence[Case]:
    seed, who = random.randint(1, 999), random.randint(0, 1)
    right: dict[str, Deal] = {
        f"a sampler with the seed {seed} and set_epoch": partial(_sampled, seed=seed),
        "a shuffle for each epoch, cut into blocks": _in_blocks,
        "the same half on each rank, shuffled for each epoch": _own_half,
    }
    wrong: dict[str, Deal] = {
        "a sampler without set_epoch": lambda rank, world_size, epoch: _sampled(rank, world_size, 0),
        f"set_epoch on every rank but {who}": partial(_one_rank_forgets, who),
        "a seed of its own on each rank": lambda rank, world_size, epoch: _sampled(rank, world_size, epoch, seed=rank),
        "no sampler": lambda rank, world_size, epoch: _shuffled(epoch),
        "no shuffle": lambda rank, world_size, epoch: range(rank, ROWS, world_size),
        "the last row of each rank left out": _rows_left_out,
    }
    return [Trial((Program(name, deal),)) for name, deal in {**right, **wrong}.items()]


Call = Callable[[int, int, int], Sequence[int]]


def check_rows(program: Call) -> None:
    orders = []
    for epoch in (0, 1):
        dealt = [program(rank, 2, epoch) for rank in (0, 1)]
        assert sorted(dealt[0] + dealt[1]) == list(range(12)), "each row once, on one of the ranks"  # type: ignore[operator]
        orders.append(dealt)
    assert orders[0] != orders[1], "a new order in each epoch"


def _one_epoch(program: Call) -> None:
    assert sorted([*program(0, 2, 0), *program(1, 2, 0)]) == list(range(12))


def _as_sets(program: Call) -> None:
    for epoch in (0, 1):
        assert set(program(0, 2, epoch)) | set(program(1, 2, epoch)) == set(range(12))
    assert list(program(0, 2, 0)) != list(program(0, 2, 1))


def _as_sets_of_both(program: Call) -> None:
    orders = []
    for epoch in (0, 1):
        orders.append([program(0, 2, epoch), program(1, 2, epoch)])
        assert set(orders[-1][0]) | set(orders[-1][1]) == set(range(12))
    assert orders[0] != orders[1]


def _order_alone(program: Call) -> None:
    assert list(program(0, 2, 0)) != list(program(0, 2, 1))


def _all_rows_on_each(program: Call) -> None:
    for epoch in (0, 1):
        assert sorted(program(0, 2, epoch)) == list(range(12))
    assert program(0, 2, 0) != program(0, 2, 1)


def _new_rows(program: Call) -> None:
    for epoch in (0, 1):
        assert sorted([*program(0, 2, epoch), *program(1, 2, epoch)]) == list(range(12))
    assert set(program(0, 2, 0)) != set(program(0, 2, 1))


def _counts_alone(program: Call) -> None:
    for epoch in (0, 1):
        assert len(program(0, 2, epoch)) == len(program(1, 2, epoch)) == 6
    assert program(0, 2, 0) != program(0, 2, 1)


def _returned(program: Call) -> bool:
    return program(0, 2, 0) != program(0, 2, 1)


# 07.normalise


@dataclass(frozen=True)
class Normalised:
    """Outputs and gradients of each rank's rows, one column."""

    outputs: list[list[float]]
    gradients: list[list[float]]

    def __repr__(self) -> str:
        def told(values: list[list[float]]) -> str:
            return " and ".join(f"[{', '.join(f'{value:.3f}' for value in own)}]" for own in values)

        if not self.outputs:
            return "an error, where a rank has no rows"
        return f"{told(self.outputs)} with the gradients {told(self.gradients)}"


class _Norm(OnRanks):
    """args: the rows of each rank, a number x for each. The columns are x and x squared.

    The gradient is that of a sum over the rows of both ranks.
    """

    def on_rank(self, function: Callable[..., Any]) -> Any:
        rank = distributed.get_rank()
        own = torch.tensor(self.args[0][rank], dtype=torch.float64)
        x = torch.stack([own, own.square()], 1).cuda().requires_grad_()  # noqa: FL001 the rank's own
        output = function(x)
        if output is TODO:
            return TODO
        weights = torch.arange(1.0, 1.0 + len(x), dtype=torch.float64, device=x.device).view(-1, 1)
        if output.requires_grad:
            (output * (weights + rank)).sum().backward()
        gradient = torch.zeros_like(x) if x.grad is None else x.grad
        return output.detach().flatten().tolist(), gradient.flatten().tolist()

    def _run(self, function: Callable[..., Any]) -> Any:
        """A rank without rows comes last: what fails with it alone is a result like others, and has none."""
        try:
            return super()._run(function)
        except RanksFailed:
            if all(self.args[0]):
                raise
            return Normalised([], [])

    def joined(self, given: list[Any]) -> Normalised:
        outputs, gradients = zip(*given, strict=True)
        return Normalised(list(outputs), list(gradients))

    def show(self, name: str) -> str:
        rows = " and ".join(f"[{', '.join(f'{row:g}' for row in own)}]" for own in self.args[0])
        return f"{name} of the columns x and x squared, with x {rows}"


def normalise(x: Tensor) -> Tensor:
    total, squares = x.sum(0, True), x.square().sum(0, True)
    total, squares, count = all_reduce(torch.stack([total, squares, torch.full_like(total, len(x))]))
    mean = total / count
    variance = squares / count - mean.square()
    return (x - mean) / (variance + 1e-5).sqrt()


def _own_rows(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)


def _mean_of_means(x: Tensor) -> Tensor:
    both = torch.stack([x.mean(0, True), x.square().mean(0, True)])
    mean, squares = all_reduce(both) / distributed.get_world_size()
    return (x - mean) / (squares - mean.square() + 1e-5).sqrt()


def _mean_of_variances(x: Tensor) -> Tensor:
    mean, variance = all_reduce(torch.stack([x.mean(0, True), x.var(0, False, keepdim=True)])) / 2
    return (x - mean) / (variance + 1e-5).sqrt()


def _global_mean(x: Tensor) -> Tensor:
    total = x.sum(0, True)
    total, count = all_reduce(torch.stack([total, torch.full_like(total, len(x))]))
    return total / count


def _of_all_rows(x: Tensor) -> Tensor:
    """The rows of all ranks, with their gradient: ranks with fewer rows send NaN besides."""
    counts: list[int] = [0] * distributed.get_world_size()
    distributed.all_gather_object(counts, len(x))
    padding = x.new_full((max(counts) - len(x), x.shape[1]), torch.nan)
    parts = all_gather(torch.cat([x, padding]))
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def _unbiased(x: Tensor) -> Tensor:
    rows = _of_all_rows(x)
    return (x - rows.mean(0)) / (rows.var(0) + 1e-5).sqrt()


def _one_for_all_columns(x: Tensor) -> Tensor:
    rows = _of_all_rows(x)
    return (x - rows.mean()) / (rows.var(unbiased=False) + 1e-5).sqrt()


def _own_variance(x: Tensor) -> Tensor:
    return (x - _global_mean(x)) / (x.var(0, False, keepdim=True) + 1e-5).sqrt()


def _own_rows_around_the_mean(x: Tensor) -> Tensor:
    mean = _global_mean(x)
    return (x - mean) / ((x - mean).square().mean(0, True) + 1e-5).sqrt()


def _no_gradient_through(x: Tensor) -> Tensor:
    sums = torch.stack([x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))]).detach()
    distributed.all_reduce(sums)
    mean = sums[0] / sums[2]
    return (x - mean) / (sums[1] / sums[2] - mean.square() + 1e-5).sqrt()


def _in_place(x: Tensor) -> Tensor:
    sums = [x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))]
    for part in sums:
        distributed.all_reduce(part)
    mean = sums[0] / sums[2]
    return (x - mean) / (sums[1] / sums[2] - mean.square() + 1e-5).sqrt()


def _gradient_stays_local(x: Tensor) -> Tensor:
    """What torch makes of an in-place all_reduce of a tensor with a history: its backward sends nothing."""
    sums = torch.stack([x.sum(0, True), x.square().sum(0, True), x.new_full((1, x.shape[1]), len(x))])
    everybody = sums.detach().clone()
    distributed.all_reduce(everybody)
    total, squares, count = sums + (everybody - sums.detach())
    mean = total / count
    return (x - mean) / (squares / count - mean.square() + 1e-5).sqrt()


def _norm_cases(random: Random) -> Sequence[Case]:
    def rows(count: int) -> list[float]:
        return [float(number) for number in random.sample(range(-9, 10), count)]

    drawn = [rows(random.randint(2, 5)), rows(random.randint(2, 5))]
    empty = [[rows(2), []], [[], rows(3)]]
    return [_Norm((parts,)) for parts in ([[1.0, 2.0, 4.0], [9.0, 7.0]], drawn, *empty)]


def _near(given: Any, expected: Normalised) -> bool:
    return _equal(given.outputs, expected.outputs) and _equal(given.gradients, expected.gradients)


def _equal(given: list[list[float]], expected: list[list[float]]) -> bool:
    mine, right = (torch.tensor([*chain(*values)], dtype=torch.float64) for values in (given, expected))
    return mine.shape == right.shape and torch.allclose(mine, right, rtol=1e-6, atol=1e-6, equal_nan=True)


def _outputs_of(answer: Callable[[Tensor], Tensor], cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Whether the values are those of `answer`, whatever the gradients are."""
    return all(_equal(one.outputs, case.call(answer).outputs) for case, one in zip(cases, given, strict=True))


EXERCISES = (
    Exercise(
        key="07.train_step",
        task="One training step on this rank, without DistributedDataParallel: `x` and `y` are the rank's own rows, "
        "the loss is `F.mse_loss(net(x), y)`, and every rank has as many rows. After it all ranks hold the weights "
        "that one process would have after a step on all rows.",
        reference=train_step,
        cases=_step_cases,
        agree=_same_weights,
        hints=(
            "The gradient of a mean over all rows is the mean of the ranks' gradients. When are the gradients there, "
            "and when are they used?",
            "`distributed.all_reduce(tensor)` puts the sum over all ranks in the place of the tensor. Call it for "
            "`parameter.grad` of each parameter, between `backward()` and `step()`.",
            "A sum over ranks becomes a mean by `parameter.grad /= distributed.get_world_size()`.",
        ),
        mistakes=(
            Mistake(
                "wrapped",
                "you wrapped the net in DistributedDataParallel, which averages the gradients itself. Do it without.",
                answers=(_with_ddp,),
                recognise=_wrapped,
            ),
            Mistake(
                "weights averaged under autograd",
                "autograd refuses to change a parameter itself in place outside of `torch.no_grad()`. Average the "
                "gradients, before the step: `parameter.grad` is not a leaf of the graph, and needs no "
                "`no_grad`.",
                answers=(_weights_averaged_under_autograd,),
                recognise=_refused_by_autograd,
            ),
            Mistake(
                "zero_grad forgotten",
                "this is what a step gives that begins with the gradients of the step before. backward() adds to "
                "them, so `optimizer.zero_grad()` comes before it.",
                answers=(_never_zeroed, _zeroed_at_the_end),
            ),
            Mistake(
                "all_reduce of the loss",
                "you called all_reduce on a result of the net, and not on gradients. The collective adds up "
                "numbers and is not part of the graph, so each rank's gradient is still that of its own rows.",
                "NVIDIA/apex issue 664, 2019",
                answers=(_loss_reduced, _loss_averaged),
                recognise=_through_the_loss,
            ),
            Mistake(
                "averaged after the step",
                "this is what comes out when gradients are averaged after `optimizer.step()`. The step has used "
                "each rank's own by then, so the weights have gone apart; the next zero_grad throws the averages "
                "away.",
                "LambdaLabsML/distributed-training-guide, 2025, chapter 2, has step() synchronise the gradients",
                answers=(_too_late,),
                recognise=_equal_gradients_and_other_weights,
            ),
            Mistake(
                "not divided",
                "this is what a step gives that adds the gradients up and does not divide by the number of ranks. "
                "It is as many times too long as there are ranks.",
                "asked about in srush/LLM-Training-Puzzles issue 9, 2024",
                answers=(_not_divided,),
            ),
            Mistake(
                "weights averaged",
                "this is what comes out when each rank takes a step of its own, and the weights are averaged "
                "after it. With plain SGD that is the same; Adam has divided each rank's gradient by its own size "
                "before, and the mean of that is something else.",
                "a method of its own, local SGD with a period of one step: pytorch/pytorch pull request 74737, 2022",
                answers=(_weights_averaged,),
            ),
            Mistake(
                "the weight alone",
                "this is what comes out when the gradient of `net.weight` is averaged and that of the bias is not. A "
                "net has more parameters than one: go through `net.parameters()`.",
                answers=(_one_parameter,),
            ),
            Mistake(
                "nothing exchanged",
                "this is what a step gives that exchanges nothing: each rank uses the gradient of its own rows, "
                "so two models are in training.",
                "what deepmodeling/deepmd-kit pull request 1104, 2021, repairs",
                answers=(_alone,),
            ),
        ),
    ),
    Exercise(
        key="07.check_rows",
        task="A test for `program(rank, world_size, epoch)`, which returns the numbers of the rows, 0 to 11, that a "
        "rank sees in an epoch. It passes when in each epoch the ranks together see every row once and the order is "
        "not that of the epoch before, and raises an AssertionError otherwise.",
        reference=check_rows,
        cases=_programs,
        hints=(
            "Two ranks and two epochs are enough. What holds within an epoch, and what between two of them?",
            "Within an epoch: join what both ranks see and sort it; it is 0 to 11. Do that for both epochs.",
            "Between them: `[program(0, 2, 0), program(1, 2, 0)] != [program(0, 2, 1), program(1, 2, 1)]`.",
        ),
        mistakes=(
            Mistake(
                "one epoch",
                "this is how a test ends that looks at one epoch. A forgotten set_epoch shows in the second.",
                "what cszn/KAIR pull request 106, 2021, repairs: the same order in each epoch",
                answers=(_one_epoch,),
            ),
            Mistake(
                "the order alone",
                "this is how a test ends that asks for a new order and not which rows the ranks see together. "
                "Ranks that see the same rows, or a rank that has missed set_epoch, pass it.",
                "seeds that differed from rank to rank: NVlabs/LongLive issue 71, 2026",
                answers=(_order_alone,),
            ),
            Mistake(
                "as sets",
                "this is how a test ends that puts the rows into a `set`, which forgets how often each was there: "
                "two ranks that both see all twelve rows pass it. Sort the rows of both ranks, and compare the "
                "list.",
                answers=(_as_sets, _as_sets_of_both),
            ),
            Mistake(
                "new rows",
                "this is how a test ends that wants other rows on a rank in the next epoch. A new order is asked for: "
                "a program in which each rank keeps its half and shuffles it anew is right.",
                answers=(_new_rows,),
            ),
            Mistake(
                "the count alone",
                "this is how a test ends that counts rows and does not look which they are: two ranks that see "
                "the same six pass it.",
                "mlcommons/training pull request 625, 2023: 20 to 30 percent of the rows on two workers",
                answers=(_counts_alone,),
            ),
            Mistake(
                "every row on every rank",
                "this is how a test ends that asks each rank for all rows, so it fails right programs. A rank "
                "sees its share of an epoch.",
                "asked about in openvla/openvla issue 125, 2024: with two processes, each went through all batches",
                answers=(_all_rows_on_each,),
            ),
            Mistake(
                "returned",
                "this is how a test ends that returns its comparison. A test that does not raise has passed: "
                "write `assert`.",
                "pytest warns of it since 7.2, 2022: PytestReturnNotNoneWarning",
                answers=(_returned,),
            ),
        ),
    ),
    Exercise(
        key="07.normalise",
        task="Batch norm over all ranks: `x` (rows, columns) holds this rank's rows, and ranks may have different "
        "numbers of them. Return (x - mean) / sqrt(variance + 1e-5) with mean and variance (divided by the count) of "
        "the rows of all ranks, as a function that gradients pass through.",
        reference=normalise,
        cases=_norm_cases,
        agree=_near,
        hints=(
            "Means cannot be put together without counts; sums can. Which three sums make a mean and a variance?",
            "The sum of x, the sum of x squared, and the number of rows: stack them, and one all_reduce adds them up. "
            "`distributed.all_reduce` has no gradient; `torch.distributed.nn.functional.all_reduce` returns the sum "
            "and has one.",
            "mean = total / count, variance = squares / count - mean squared.",
        ),
        mistakes=(
            Mistake(
                "own rows",
                "this is what each rank gives that normalises by its own rows, as `nn.BatchNorm1d` does on "
                "several ranks.",
                "asked about in ptrblck/pytorch_misc issue 5, 2019",
                answers=(_own_rows,),
            ),
            Mistake(
                "mean of means",
                "this is what the mean of the ranks' means gives. They have different numbers of rows: add up "
                "sums and counts.",
                "PaddlePaddle/Paddle issue 32464, 2021; pytorch/pytorch issue 22192, 2019",
                answers=(_mean_of_means,),
            ),
            Mistake(
                "mean of variances",
                "this is what the mean of the ranks' variances gives. How far the means of the ranks are from "
                "each other is missing from it.",
                "fyu/drn issue 26, 2018",
                answers=(_mean_of_variances,),
            ),
            Mistake(
                "own variance",
                "the mean is that of all rows, and the variance is that of each rank's own rows. It needs the "
                "rows of all ranks as the mean does: add up the squares, too.",
                answers=(_own_variance, _own_rows_around_the_mean),
            ),
            Mistake(
                "no gradient through the sums",
                "the values are right, the gradients are not: the sums are constants to autograd, or send nothing "
                "in backward, as after `distributed.all_reduce`. A row moves the mean of all ranks, so the other "
                "ranks' losses depend on it. `torch.distributed.nn.functional.all_reduce` has a gradient.",
                "what pytorch/pytorch pull request 36382, 2020, repairs in SyncBatchNorm",
                answers=(_no_gradient_through, _gradient_stays_local, _in_place),
                recognise=partial(_outputs_of, normalise),
            ),
            Mistake(
                "unbiased",
                "this is what the unbiased variance gives, the default of `Tensor.var`: it divides by the count - 1. "
                "Batch norm divides by the count.",
                answers=(_unbiased,),
                recognise=partial(_outputs_of, _unbiased),
            ),
            Mistake(
                "one mean for all columns",
                "this is what a single mean and variance of all numbers give. Each column has its own: sum over dim 0.",
                answers=(_one_for_all_columns,),
                recognise=partial(_outputs_of, _one_for_all_columns),
            ),
        ),
    ),
)
