"""x * x, computed by NumPy in a Function of your own, with 2 * x * grad, computed by NumPy, as its gradient. Result and
gradient are on the device of x, today and under the rule of 2017.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb19.cases import kind

hints = (
    "A class in the function: `class Squared(torch.autograd.Function)` with the static methods "
    "`forward(ctx, x)` and `backward(ctx, grad)`; return `Squared.apply(x)`.",
    "`ctx.save_for_backward(x)` in forward, `(x,) = ctx.saved_tensors` in backward. There x says which device "
    "is right.",
    "In both halves: `torch.from_numpy(array).to(x.device)`.",
)


@contextmanager
def _device_0_in_backward() -> Iterator[None]:
    """The rule of torch 0.1.12, as the notebook has it."""
    node: Any = torch.autograd.function.BackwardCFunction
    apply = node.apply

    def on_device_0(ctx: Any, *gradients: Any) -> Any:
        with torch.cuda.device(0):  # noqa: FL004 the rule itself
            return apply(ctx, *gradients)

    node.apply = on_device_0
    try:
        yield
    finally:
        node.apply = apply


@dataclass(frozen=True)
class Rule(Case):
    """Forward and backward of the reader's function while a GPU is current, today or under the rule of 2017.

    Between the two, forward is called twice more, with different numbers: on the same device, and on a different one,
    as by a different replica. The gradient that comes back is 1, 2, 3 .. and not 1 everywhere, which hides its
    absence. Numbers that are right and did not go through NumPy in both halves are told apart at the end.
    """

    gpu: int = 0
    old: bool = False

    def call(self, function: Callable[..., Any]) -> Any:
        x = self.args[0].detach().clone().requires_grad_()
        with torch.cuda.device(self.gpu):
            with _arrays() as there:
                out = function(x)
            if out is TODO:
                return TODO
            told = [_place(out, x), *_rounded(out)]
            elsewhere = "cuda:1" if x.get_device() == 0 else "cuda:0"  # noqa: FL004 any device but that of x
            function((x.detach() + 1).requires_grad_())
            function((x.detach() + 2).to(elsewhere).requires_grad_())
            loss = (out * torch.arange(1.0, len(out) + 1, device=out.device)).sum()
            if loss.requires_grad and not _has_function(loss):
                return [*told, "no Function of your own"]
            try:
                with _device_0_in_backward() if self.old else nullcontext(), _arrays() as back:
                    loss.backward()
            except RuntimeError as error:
                return [*told, kind(error)]
        if x.grad is None:
            return [*told, "no gradient"]
        told += [str(x.grad.device), *_rounded(x.grad)]
        numbers = x.detach()
        gradient = 2 * numbers * torch.arange(1.0, len(x) + 1, device=x.device)
        right = [str(x.device), *_rounded(numbers**2), str(x.device), *_rounded(gradient)]
        return [*told, "without NumPy"] if told == right and not (there and back) else told

    def show(self, name: str) -> str:
        rule = "under the rule of 2017" if self.old else "today"
        return f"{super().show(name)} and its backward, {rule}, while cuda:{self.gpu} is current,"


@contextmanager
def _arrays() -> Iterator[list[str]]:
    """How tensors became arrays, or numbers of Python, while this is open; `np.asarray(x)` calls `x.numpy()`."""
    ways: list[str] = []

    def noted(way: str) -> Any:
        original = getattr(Tensor, way)

        def note(*args: Any, **kwargs: Any) -> Any:
            ways.append(way)
            return original(*args, **kwargs)

        return mock.patch.object(Tensor, way, note)

    with noted("numpy"), noted("__dlpack__"), noted("tolist"):
        yield ways


def _place(out: Tensor, x: Tensor) -> str:
    return str(out.device) if out.dtype == x.dtype else f"{out.device}, in {out.dtype}"


def _without_numpy(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(isinstance(result, list) and "without NumPy" in result for result in given)


def _has_function(loss: Tensor) -> bool:
    """Whether a Function that is written in Python has a part in `loss`."""
    nodes: list[Any] = [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        nodes += [before for before, _ in node.next_functions if before is not None]
    return False


def _rounded(x: Tensor) -> list[float]:
    return [round(value, 4) for value in x.detach().flatten().tolist()]


def squared(x: Tensor) -> Tensor:
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            array = x.detach().cpu().numpy()  # noqa: FL006 on purpose
            return torch.from_numpy(array * array).to(x.device)  # noqa: FL006 on purpose

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            array = 2 * x.detach().cpu().numpy() * grad.cpu().numpy()  # noqa: FL006 on purpose
            return torch.from_numpy(array).to(x.device)  # noqa: FL006 on purpose

    return Squared.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def _differentiated(derivative: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """An answer that is right but for `derivative(x, grad)`, both on the CPU."""

    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.detach().square()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return derivative(x.detach().cpu(), grad.cpu()).to(x.device)

    return lambda x: Squared.apply(x)  # type: ignore[no-untyped-call]


_last: dict[Any, Tensor] = {}


class _OnePlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        _last["x"] = x.detach()
        return x.detach().square()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 2 * _last["x"].to(grad.device) * grad


class _OnePlaceForEachDevice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        _last[x.device] = x.detach()
        return x.detach().square()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 2 * _last[grad.device] * grad


def _squaring(out: Callable[[Tensor, Tensor], Tensor], back: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """An answer that brings its result with `out` and its gradient with `back`: (CPU tensor, x or grad) -> tensor."""

    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return out((x * x).detach().cpu(), x)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return back(2 * x.detach().cpu() * grad.cpu(), grad)

    return lambda x: Squared.apply(x)  # type: ignore[no-untyped-call]


def _home(result: Tensor, like: Tensor) -> Tensor:
    return result.to(like.device)


def _current(result: Tensor, like: Tensor) -> Tensor:
    return result.cuda() if like.is_cuda else result  # noqa: FL001 the mistake itself


def _bare(result: Tensor, like: Tensor) -> Tensor:
    return result.cuda()  # noqa: FL001 the mistake itself


def _first(result: Tensor, like: Tensor) -> Tensor:
    return result.to("cuda:0") if like.is_cuda else result  # noqa: FL004 the mistake itself


def _first_always(result: Tensor, like: Tensor) -> Tensor:
    return result.to("cuda:0")  # noqa: FL004 the mistake itself


def _left(result: Tensor, like: Tensor) -> Tensor:
    return result


_over_the_cpu = _squaring(_left, lambda result, grad: result.to(grad.device))


def cases(random: Random) -> Sequence[Case]:
    places = [("cuda:1", 0, False), ("cuda:1", 0, True), ("cuda:0", 1, False), ("cpu", 0, False), ("cuda:1", 1, True)]
    drawn = [(f"cuda:{random.randrange(2)}", random.randrange(2), random.random() < 0.5) for _ in range(4)]
    cases: list[Case] = []
    for k, (device, gpu, old) in enumerate(places + drawn):
        size = 3 if k == 0 else random.randint(1, 9)
        cases.append(
            Rule((torch.tensor([random.randint(-20, 20) / 4 for _ in range(size)], device=device),), {}, gpu, old)
        )
    return cases


@wrong
def bare_cuda_in_backward(*given):
    """this is what a backward gives that brings the gradient to the current GPU. Today that is the right one, and under
    the rule of 2017 it is cuda:0.

    Source: the eight copies of the RoI pooling of 2017
    """
    return _squaring(_home, _current)(*given)


also(bare_cuda_in_backward)(_squaring(_home, _bare))


@wrong
def bare_cuda_in_forward(*given):
    """this is what a forward gives that brings the result to the current GPU, and x may be on a different one.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, before its repair
    """
    return _squaring(_current, _home)(*given)


also(bare_cuda_in_forward)(_squaring(_bare, _home))
also(bare_cuda_in_forward)(_squaring(_bare, _bare))


@wrong
def left_on_the_CPU(*given):
    """this result stays on the CPU. It belongs on the device of x; and a gradient that comes to such a Function is on
    the CPU as well, so `grad.device` is the wrong thing to ask.

    Source: suspect 10, after princevandev/RFCN_CoupleNet.pytorch issue 8, 2019
    """
    return _over_the_cpu(*given)


also(left_on_the_CPU)(_squaring(_left, _left))


@also(left_on_the_CPU)
def result_left(x: Tensor) -> Any:
    return _squaring(_left, lambda result, grad: result.to(x.device))(x)


@wrong
def the_gradient_left_on_the_CPU(*given):
    """this gradient stays on the CPU, and the engine stops: the gradient of x belongs on the device of x."""
    return _squaring(_home, _left)(*given)


@wrong
def a_GPU_by_number(x):
    """this is what the number of a GPU gives, written into the function. x may be on a different one: ask it,
    `x.device`.

    Source: suspect 5 of this notebook; longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU
    """
    return _squaring(_first, _home)(x)


for out, back in (
    (_home, _first),
    (_first, _first),
    (_first_always, _home),
    (_home, _first_always),
    (_first_always,) * 2,
):
    also(a_GPU_by_number)(_squaring(out, back))


@wrong
def the_gradient_from_above_left_out(*given):
    """this backward does not use the gradient that it is given, which is 1 only where the loss is a plain sum. The
    gradient of x is 2 * x *times* that.
    """
    return _differentiated(lambda x, grad: 2 * x)(*given)


@wrong
def the_derivative(*given):
    """this gradient has the right place and the wrong values: x * x changes by 2 * x, so the gradient is 2 * x *
    grad.
    """
    return _differentiated(lambda x, grad: x * grad)(*given)


also(the_derivative)(_differentiated(lambda x, grad: 2 * grad))
also(the_derivative)(_differentiated(lambda x, grad: 2 * x * x * grad))


@wrong
def one_place_for_all_calls(x):
    """this is what a forward gives that keeps x where a later call overwrites it, one place for all or one for each
    device: backward finds the numbers of that call. Keep x on `ctx`, of which each call has its own.

    Source: suspect 9 of this notebook; pytorch/pytorch issue 821, 2017
    """
    return _OnePlace.apply(x)


@also(one_place_for_all_calls)
def _(x):
    return _OnePlaceForEachDevice.apply(x)


@wrong
def autograds_own(x):
    """no Function has a part in this result. What NumPy computes has no history, and neither a hook nor
    `requires_grad_()` gives it one: write both halves, the way there and the way back, in a Function.
    """
    return x * x


@wrong(recognise=_without_numpy)
def without_NumPy(*given):
    """the numbers are right, and they did not go through NumPy in both halves. The exercise is about the way to the CPU
    and back, which a Function of torch's operations does not need.
    """
    return _differentiated(lambda x, grad: 2 * x * grad)(*given)


@wrong
def no_gradient(x):
    """there is no Function: what NumPy computes has no history, so backward finds nothing to do.

    Source: pytorch/pytorch issue 821, 2017, on what a Function is for
    """
    return torch.from_numpy(x.detach().cpu().numpy() ** 2).to(x.device)
