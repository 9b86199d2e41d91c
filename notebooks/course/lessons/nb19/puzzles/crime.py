"""A function of x (N, 2), on the GPU of its replica, that returns a tensor of the same shape. Forward runs on both
GPUs; backward of the gathered losses stops today with an error about devices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb19.cases import kind

hints = (
    "Forward has to be innocent, so the crime needs a backward of its own: a `torch.autograd.Function`, or a "
    "hook on `x`.",
    "A bare `.cuda()` will not do today, because the engine enters the right GPU. Name the wrong one.",
    '`x.register_hook(lambda grad: grad.to("cuda:0"))` in forward, or a Function whose backward returns such '
    "a gradient.",
)


@dataclass(frozen=True)
class Ending:
    """How a suspect ended. The words of the error are not compared."""

    forward: str
    backward: str = "not reached"
    moved: bool = field(default=False, compare=False)  # the result was on a different GPU than x
    own: bool = field(default=False, compare=False)  # it came out of a Function written in Python, or x has a hook

    def __repr__(self) -> str:
        return f"<forward: {self.forward}, backward: {self.backward}>"


class Scene(Case):
    """Two replicas of a small layer, the reader's function on each, the losses gathered, and backward."""

    def call(self, function: Callable[..., Any]) -> Any:
        layer, losses = nn.Linear(3, 2).cuda(), []  # noqa: FL001 the first replica's
        moved = own = False
        try:
            for k, replica in enumerate(nn.parallel.replicate(layer, [0, 1])):
                with torch.cuda.device(k):
                    x = replica(self.args[0].to(k))
                    returned = function(x)
                if not isinstance(returned, Tensor):  # TODO, or an answer without `return`
                    return returned
                if returned.shape != x.shape:
                    return Ending(f"a result {tuple(returned.shape)} for x {tuple(x.shape)}")
                moved |= returned.get_device() != k
                own |= isinstance(returned.grad_fn, torch.autograd.function.BackwardCFunction)
                own |= bool(x._backward_hooks or returned._backward_hooks)
                losses.append(returned.sum().view(1))
            loss = nn.parallel.gather(losses, 0).mean()
        except NotImplementedError:  # a starter that is not filled in
            raise
        except (RuntimeError, ValueError) as error:
            return Ending(kind(error))
        try:
            loss.backward()
        except (RuntimeError, ValueError) as error:
            return Ending("a result on a different GPU" if moved else "runs", kind(error))
        return Ending("runs", "runs", moved, own)

    def show(self, name: str) -> str:
        """With what the function gets: the output of the layer, two numbers a row."""
        return f"{name}(<tensor ({len(self.args[0])}, 2)>), called on both replicas,"


def crime(x: Tensor) -> Tensor:
    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad.to("cuda:0") * 2  # noqa: FL004 the wrong GPU for every replica but the first

    return Elsewhere.apply(x)  # type: ignore[no-any-return, no-untyped-call]


class _Bare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.cpu().cuda() * 2  # noqa: FL001 right today, whoever calls


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise RuntimeError("Expected all tensors to be on the same device")


def _all_run(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(isinstance(end, Ending) and end == Ending("runs", "runs") for end in given)


def _moves(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return _all_run(cases, given) and any(end.moved for end in given)


def _own_backward(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return _all_run(cases, given) and all(end.own for end in given)


def _nothing_stops(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return _all_run(cases, given) and not any(end.moved or end.own for end in given)


def _other_error(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(isinstance(end, Ending) and end.backward.startswith(("an error (", "an error that")) for end in given)


def cases(random: Random) -> Sequence[Case]:
    sizes = [4, *(random.randint(1, 99) for _ in range(4))]
    return [Scene((torch.rand(n, 3, generator=torch.Generator().manual_seed(random.randrange(2**32))),)) for n in sizes]


@wrong
def caught_in_forward(x):
    """forward itself stops on the second GPU: something in it is on cuda:0. The report says that forward ran.

    Source: the post on a multi-GPU Faster R-CNN, about 2017: what its author repaired
    """
    return x + torch.ones(2, device="cuda:0")


@wrong
def left_on_the_CPU(x):
    """this result is on the CPU, and `gather` takes results from GPUs alone, so the loss is never reached. Bring it
    back with `.to(x.device)`.
    """
    return x.cpu()


@wrong
def cut_from_the_graph(x):
    """this result is cut off from its history, so backward says that there is no gradient. The report names devices.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, whose listings use `.data` throughout
    """
    return x.detach() * 2


@also(cut_from_the_graph)
def _(x):
    return x.data


@wrong(recognise=_moves)
def a_move_that_autograd_knows(x):
    """this result is on a different GPU than x. Autograd knows `.to`, and its backward brings the gradient back, so
    nothing stops.

    Source: pytorch/pytorch issue 2573, 2017, where `.cuda()` is told to be such an operation
    """
    return x.to("cuda:0")


@also(a_move_that_autograd_knows)
def _(x):
    return (x * 2).to("cuda:0")


@wrong(recognise=_own_backward)
def right_today(x):
    """there is a backward or a hook of your own, and nothing stops it. A bare `.cuda()` is right there today, because
    the engine makes the GPU of each replica current. Until torch 0.1.12 it was not.

    Source: pytorch/pytorch issue 2017, 2017
    """
    return _Bare.apply(x)


@also(right_today)
def hooked(x: Tensor) -> Tensor:
    x.register_hook(lambda grad: grad.cuda())  # noqa: FL001 right today
    return x * 2


@wrong(recognise=_nothing_stops)
def nothing_stops(x):
    """this is what operations give that autograd knows. A copy, or a trip over the CPU and back, is undone in backward
    on the right device. The crime needs a backward of its own.
    """
    return x.clone()


@also(nothing_stops)
def _(x):
    return x.cpu().to(x.device)


@wrong(recognise=_other_error)
def other_words(x: Tensor) -> Tensor:
    """backward stops, but its error is not torch's about devices. The report names one that a layer raised."""
    powers = x.exp()  # backward needs this result
    return powers.add_(1)


@also(other_words)
def _(x):
    return _ByHand.apply(x)
