"""A test, run on every rank: `build()` returns a net for rows of 8 numbers, sharded, and its optimizer. Raise if a step
of the optimizer leaves a parameter of the net as it was.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from course.kit.learn.exercise import TODO, Case, Ended
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb10.cases import RanksCase

hints = (
    "Compare the net's parameters before and after `optimizer.step()`, all of them.",
    "`parameter.to_local()` is the part that this rank keeps. Clone it: `step` writes into it.",
    "Build, call the net with random rows on 'cuda', call backward, keep clones of all parts, call "
    "`optimizer.step()`, and assert for each part that it is not equal to its clone.",
)


Build = Callable[[], tuple[nn.Module, torch.optim.Optimizer]]


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


def _always_fails(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """The right programs by an assertion, the wrong ones in any way."""
    pairs = zip(cases, given, strict=True)
    asserted = (one.why.startswith("AssertionError") for case, one in pairs if case.args[0].name.startswith("a right"))
    return not any(one.passed for one in given) and all(asserted)


def cases(random: Random) -> Sequence[Case]:
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


@wrong
def it_runs(build: Build) -> None:
    """this is how a test ends that asks only whether a step runs, or whether the net has gradients. Both are so where
    the optimizer holds tensors that the net has left behind: it finds no gradient in those and skips them.

    Source: a loop that runs and trains nothing in huggingface/accelerate pull request 3394, 2025
    """
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    optimizer.step()


@also(it_runs)
def has_gradients(build: Build) -> None:
    net, _ = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


@wrong(recognise=_always_fails)
def compared_with_itself(build: Build) -> None:
    """this test fails on every program, the right ones too. Either what it kept has changed as well: `.detach()` and
    `.to_local()` give the same memory again, and `step` writes into it, so keep a `.clone()`. Or its rows leave some
    parameter without a gradient, as rows of zeros do. Or it asks for a smaller loss, which a large step need not give.

    Source: shivram1987/diffGrad issue 2, 2020, where a gradient was kept so
    """
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    before = [parameter.to_local().detach() for parameter in net.parameters()]  # type: ignore[attr-defined]
    optimizer.step()
    for parameter, old in zip(net.parameters(), before, strict=True):
        assert not parameter.to_local().equal(old)  # type: ignore[attr-defined]


@wrong
def one_parameter(build: Build) -> None:
    """this is how a test ends that looks at the weight of the last layer alone. Look at all parameters."""
    net, optimizer = build()
    net(torch.randn(2, 8, device="cuda")).square().sum().backward()
    before = net[1].weight.to_local().clone()  # type: ignore[index,operator,union-attr]
    optimizer.step()
    assert not net[1].weight.to_local().equal(before)  # type: ignore[index,operator,union-attr]


@wrong
def the_loss_changes(build: Build) -> None:
    """this is how a test ends that compares the loss. It changes as soon as one layer learns; the other may stay as it
    was.

    Source: "only some parameters might be impacted", pytorch/pytorch issue 149205, 2025
    """
    net, optimizer = build()
    x = torch.ones(2, 8, device="cuda")
    before = net(x).square().sum()
    before.backward()
    optimizer.step()
    assert net(x).square().sum() != before
