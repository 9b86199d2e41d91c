"""Exercises of notebook 19: a suspect that fits the report, and a Function whose backward is right in any thread."""

import dis
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from course.kit.attempt import last_line
from course.kit.guide_2017 import words_for
from course.kit.learn.exercise import TODO, Case, Exercise, Mistake

POST = "the post on a multi-GPU Faster R-CNN, about 2017"
FITS = "forward runs on both GPUs, backward stops because of devices"


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
            return Ending(_kind(error))
        try:
            loss.backward()
        except (RuntimeError, ValueError) as error:
            return Ending("a result on a different GPU" if moved else "runs", _kind(error))
        return Ending("runs", "runs", moved, own)

    def show(self, name: str) -> str:
        """With what the function gets: the output of the layer, two numbers a row."""
        return f"{name}(<tensor ({len(self.args[0])}, 2)>), called on both replicas,"


def _kind(error: Exception) -> str:
    if _raised_by_hand(error):
        return "an error that the function raises itself"
    words = words_for(error)
    if words in ("gradient elsewhere", "two devices"):
        return "an error about devices"
    return f"an error ({last_line(error) if words == type(error).__name__ else words})"


def _raised_by_hand(error: Exception) -> bool:
    """By a `raise` in the reader's own code, and not by an operation or a helper that it calls."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").split(".")[0] in ("torch", "vgpu", "frcnn_lite"):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


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


def _hooked(x: Tensor) -> Tensor:
    x.register_hook(lambda grad: grad.cuda())  # noqa: FL001 right today
    return x * 2


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


def _changed_in_place(x: Tensor) -> Tensor:
    powers = x.exp()  # backward needs this result
    return powers.add_(1)


def _scenes(random: Random) -> Sequence[Case]:
    sizes = [4, *(random.randint(1, 99) for _ in range(4))]
    return [Scene((torch.rand(n, 3, generator=torch.Generator().manual_seed(random.randrange(2**32))),)) for n in sizes]


# ---- 19.squared


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
                return [*told, _kind(error)]
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


def _result_left(x: Tensor) -> Any:
    return _squaring(_left, lambda result, grad: result.to(x.device))(x)


_over_the_cpu = _squaring(_left, lambda result, grad: result.to(grad.device))


def _rule_cases(random: Random) -> Sequence[Case]:
    places = [("cuda:1", 0, False), ("cuda:1", 0, True), ("cuda:0", 1, False), ("cpu", 0, False), ("cuda:1", 1, True)]
    drawn = [(f"cuda:{random.randrange(2)}", random.randrange(2), random.random() < 0.5) for _ in range(4)]
    cases: list[Case] = []
    for k, (device, gpu, old) in enumerate(places + drawn):
        size = 3 if k == 0 else random.randint(1, 9)
        cases.append(
            Rule((torch.tensor([random.randint(-20, 20) / 4 for _ in range(size)], device=device),), {}, gpu, old)
        )
    return cases


EXERCISES = (
    Exercise(
        key="19.crime",
        task="A function of x (N, 2), on the GPU of its replica, that returns a tensor of the same shape. "
        "Forward runs on both GPUs; backward of the gathered losses stops today with an error about devices.",
        reference=crime,
        cases=_scenes,
        hints=(
            "Forward has to be innocent, so the crime needs a backward of its own: a `torch.autograd.Function`, or a "
            "hook on `x`.",
            "A bare `.cuda()` will not do today, because the engine enters the right GPU. Name the wrong one.",
            '`x.register_hook(lambda grad: grad.to("cuda:0"))` in forward, or a Function whose backward returns such '
            "a gradient.",
        ),
        mistakes=(
            Mistake(
                "caught in forward",
                "forward itself stops on the second GPU: something in it is on cuda:0. The report says that forward "
                "ran.",
                POST + ": what its author repaired",
                answers=(lambda x: x + torch.ones(2, device="cuda:0"),),  # noqa: FL004 on purpose
            ),
            Mistake(
                "left on the CPU",
                "this result is on the CPU, and `gather` takes results from GPUs alone, so the loss is never reached. "
                "Bring it back with `.to(x.device)`.",
                answers=(lambda x: x.cpu(),),
            ),
            Mistake(
                "cut from the graph",
                "this result is cut off from its history, so backward says that there is no gradient. The report "
                "names devices.",
                POST + ", whose listings use `.data` throughout",
                answers=(lambda x: x.detach() * 2, lambda x: x.data),
            ),
            Mistake(
                "a move that autograd knows",
                "this result is on a different GPU than x. Autograd knows `.to`, and its backward brings the gradient "
                "back, so nothing stops.",
                "pytorch/pytorch issue 2573, 2017, where `.cuda()` is told to be such an operation",
                answers=(lambda x: x.to("cuda:0"), lambda x: (x * 2).to("cuda:0")),  # noqa: FL004 on purpose
                recognise=_moves,
            ),
            Mistake(
                "right today",
                "there is a backward or a hook of your own, and nothing stops it. A bare `.cuda()` is right there "
                "today, because the engine makes the GPU of each replica current. Until torch 0.1.12 it was not.",
                "pytorch/pytorch issue 2017, 2017",
                answers=(lambda x: _Bare.apply(x), _hooked),  # type: ignore[no-untyped-call]
                recognise=_own_backward,
            ),
            Mistake(
                "nothing stops",
                "this is what operations give that autograd knows. A copy, or a trip over the CPU and back, is undone "
                "in backward on the right device. The crime needs a backward of its own.",
                answers=(lambda x: x.clone(), lambda x: x.cpu().to(x.device)),
                recognise=_nothing_stops,
            ),
            Mistake(
                "other words",
                "backward stops, but its error is not torch's about devices. The report names one that a layer raised.",
                answers=(_changed_in_place, lambda x: _ByHand.apply(x)),  # type: ignore[no-untyped-call]
                recognise=_other_error,
            ),
        ),
    ),
    Exercise(
        key="19.squared",
        task="x * x, computed by NumPy in a Function of your own, with 2 * x * grad, computed by NumPy, as its "
        "gradient. Result and gradient are on the device of x, today and under the rule of 2017.",
        reference=squared,
        cases=_rule_cases,
        hints=(
            "A class in the function: `class Squared(torch.autograd.Function)` with the static methods "
            "`forward(ctx, x)` and `backward(ctx, grad)`; return `Squared.apply(x)`.",
            "`ctx.save_for_backward(x)` in forward, `(x,) = ctx.saved_tensors` in backward. There x says which device "
            "is right.",
            "In both halves: `torch.from_numpy(array).to(x.device)`.",
        ),
        mistakes=(
            Mistake(
                "bare .cuda() in backward",
                "this is what a backward gives that brings the gradient to the current GPU. Today that is the right "
                "one, and under the rule of 2017 it is cuda:0.",
                "the eight copies of the RoI pooling of 2017",
                answers=(_squaring(_home, _current), _squaring(_home, _bare)),
            ),
            Mistake(
                "bare .cuda() in forward",
                "this is what a forward gives that brings the result to the current GPU, and x may be on a different "
                "one.",
                POST + ", before its repair",
                answers=(_squaring(_current, _home), _squaring(_bare, _home), _squaring(_bare, _bare)),
            ),
            Mistake(
                "left on the CPU",
                "this result stays on the CPU. It belongs on the device of x; and a gradient that comes to such a "
                "Function is on the CPU as well, so `grad.device` is the wrong thing to ask.",
                "suspect 10, after princevandev/RFCN_CoupleNet.pytorch issue 8, 2019",
                answers=(_over_the_cpu, _squaring(_left, _left), _result_left),
            ),
            Mistake(
                "the gradient left on the CPU",
                "this gradient stays on the CPU, and the engine stops: the gradient of x belongs on the device of x.",
                answers=(_squaring(_home, _left),),
            ),
            Mistake(
                "a GPU by number",
                "this is what the number of a GPU gives, written into the function. x may be on a different one: ask "
                "it, `x.device`.",
                "suspect 5 of this notebook; longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU",
                answers=tuple(
                    _squaring(out, back)
                    for first in (_first, _first_always)
                    for out, back in ((first, _home), (_home, first), (first, first))
                ),
            ),
            Mistake(
                "the gradient from above left out",
                "this backward does not use the gradient that it is given, which is 1 only where the loss is a plain "
                "sum. The gradient of x is 2 * x *times* that.",
                answers=(_differentiated(lambda x, grad: 2 * x),),
            ),
            Mistake(
                "the derivative",
                "this gradient has the right place and the wrong values: x * x changes by 2 * x, so the gradient is "
                "2 * x * grad.",
                answers=(
                    _differentiated(lambda x, grad: x * grad),
                    _differentiated(lambda x, grad: 2 * grad),
                    _differentiated(lambda x, grad: 2 * x * x * grad),
                ),
            ),
            Mistake(
                "one place for all calls",
                "this is what a forward gives that keeps x where a later call overwrites it, one place for all or one "
                "for each device: backward finds the numbers of that call. Keep x on `ctx`, of which each call has its "
                "own.",
                "suspect 9 of this notebook; pytorch/pytorch issue 821, 2017",
                answers=(lambda x: _OnePlace.apply(x), lambda x: _OnePlaceForEachDevice.apply(x)),  # type: ignore[no-untyped-call]
            ),
            Mistake(
                "autograd's own",
                "no Function has a part in this result. What NumPy computes has no history, and neither a hook nor "
                "`requires_grad_()` gives it one: write both halves, the way there and the way back, in a Function.",
                answers=(lambda x: x * x,),
            ),
            Mistake(
                "without NumPy",
                "the numbers are right, and they did not go through NumPy in both halves. The exercise is about the "
                "way to the CPU and back, which a Function of torch's operations does not need.",
                answers=(_differentiated(lambda x, grad: 2 * x * grad),),
                recognise=_without_numpy,
            ),
            Mistake(
                "no gradient",
                "there is no Function: what NumPy computes has no history, so backward finds nothing to do.",
                "pytorch/pytorch issue 821, 2017, on what a Function is for",
                answers=(lambda x: torch.from_numpy(x.detach().cpu().numpy() ** 2).to(x.device),),
            ),
        ),
    ),
)
