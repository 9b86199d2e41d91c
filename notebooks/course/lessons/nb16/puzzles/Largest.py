"""A Function whose `forward(ctx, x)` returns the largest number of each row of x (rows, columns), as (rows, 1), and
whose gradient is right however often, and on however many GPUs, it is called before backward.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import wrong

hints = (
    "What does backward need that only forward knows? Two things: where the largest numbers were, and the shape of x.",
    "`ctx` belongs to one call. A tensor goes into `ctx.save_for_backward(places)`, and a shape into an "
    "attribute, `ctx.size = x.shape`.",
    "In backward, `(places,) = ctx.saved_tensors`, and then "
    "`gradient.new_zeros(ctx.size).scatter(1, places, gradient)`.",
)


Apply = Callable[[Tensor], Tensor]


class Largest(Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        places = x.argmax(dim=1, keepdim=True)
        ctx.save_for_backward(places)
        ctx.size = x.shape
        return x.gather(1, places)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size).scatter(1, places, gradient)


@wrong
class on_the_class(Function):
    """this is what a Function gives that keeps the places on its class. There is one class for all calls, so backward
    reads what the last call wrote, on whichever GPU that was.

    Source: an instance that keeps its gradient, in pytorch/pytorch issue 16947, 2019
    """

    places: Any = None

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        on_the_class.places = x.argmax(dim=1, keepdim=True)
        ctx.size = x.shape
        return x.gather(1, on_the_class.places)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, on_the_class.places, gradient)


@wrong
class moved(on_the_class):
    """this is what a Function gives that moves the places to the GPU of the gradient and leaves them where all calls
    share them. There is no error, and the gradient is that of a different call.

    Source: a user who met the error of tensors on different GPUs in pytorch/pytorch issue 821, 2017
    """

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, on_the_class.places.to(gradient.device), gradient)


@wrong
class a_slot_for_each_GPU(Largest):
    """this is what a Function gives that has a slot for each GPU. Two GPUs do not disturb each other, but two calls on
    the same GPU do.
    """

    places: ClassVar[dict[torch.device, Tensor]] = {}

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        a_slot_for_each_GPU.places[x.device] = x.argmax(dim=1, keepdim=True)
        ctx.size = x.shape
        return x.gather(1, a_slot_for_each_GPU.places[x.device])

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, a_slot_for_each_GPU.places[gradient.device], gradient)


@wrong
class a_stack(Largest):
    """this is what a Function gives that keeps the places on a stack. Backward runs through the calls in reverse order,
    so it often finds its own on top, but not after a call without a backward, and not on two GPUs, whose backwards run
    at the same time.
    """

    places: ClassVar[list[Tensor]] = []

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        a_stack.places.append(x.argmax(dim=1, keepdim=True))
        ctx.size = x.shape
        return x.gather(1, a_stack.places[-1])

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        places = a_stack.places.pop().to(gradient.device)
        return gradient.new_zeros(ctx.size).scatter(1, places, gradient)


@wrong
class ones(Largest):
    """this gradient has 1 where the largest numbers were, which is the gradient of a sum. In general `gradient` holds
    what the loss does to each output, and it has to be passed on.

    Source: a test with `output.sum().backward()`, as in the notes on simple-faster-rcnn-pytorch, 2017, cannot see it
    """

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size).scatter(1, places, 1.0)


@wrong
class the_size_on_the_class(Largest):
    """this is what a Function gives that keeps the places in ctx and the size of x on its class. A call with fewer rows
    or columns changes it before backward reads it.
    """

    size: Any = None

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        the_size_on_the_class.size = x.shape
        return Largest.forward(ctx, x)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(the_size_on_the_class.size).scatter(1, places, gradient)


@wrong
class a_bare_cuda(Largest):
    """this is what zeros give that a bare `.cuda()` puts on the current GPU, wherever the gradient is.
    `gradient.new_zeros(...)` puts them beside it.
    """

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.size).cuda().scatter(1, places, gradient)  # noqa: FL001, FL002 the mistake


@wrong
class float32_only(Largest):
    """in float32 this is right, and in float64 it is rounded: the zeros are made in float32, whatever the gradient is.
    `gradient.new_zeros(...)` takes over its dtype as well as its device.
    """

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.size, device=gradient.device).scatter(1, places, gradient.float())


@wrong
class all_that_tie(Function):
    """this is right while a row has one largest number. Of several that are equal, each gets the whole gradient here,
    so the row gets it several times. The output is one number: send its gradient to the cell that `argmax` names.
    """

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        largest = x.amax(dim=1, keepdim=True)
        ctx.save_for_backward(x == largest)
        return largest

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (largest,) = ctx.saved_tensors
        return largest * gradient


def _gradients(apply: Apply, parts: Sequence[Tensor], before_backward: Callable[[], Any] = lambda: None) -> Any:
    """Outputs and gradients of one backward through a call for each part; numbers, on the CPU."""
    leaves = [part.detach().clone().requires_grad_() for part in parts]
    outputs = [apply(leaf) for leaf in leaves]
    if any(out is TODO for out in outputs):
        return TODO
    before_backward()
    weights = [torch.arange(1.0, 1 + out.numel(), device=out.device).view_as(out) for out in outputs]
    if parts[0].dtype == torch.float64:
        weights = [weight.double() / 3 for weight in weights]  # not a number of float32
    sum((out * weight).sum().cpu() for out, weight in zip(outputs, weights, strict=True)).backward()  # type: ignore
    return [*(out.tolist() for out in outputs), *(leaf.grad.tolist() for leaf in leaves)]  # type: ignore[union-attr]


def _with_ties(apply: Apply, x: Tensor, other: Tensor) -> Any:
    """What each row has of gradient, in all and outside of its largest numbers: which of them gets it is open."""
    found = _gradients(apply, [x])
    if found is TODO:
        return TODO
    values, gradient = (torch.tensor(rows) for rows in found)
    return [values.tolist(), gradient.sum(dim=1).tolist(), gradient[x < x.amax(dim=1, keepdim=True)].tolist()]


def _between(apply: Apply, x: Tensor, other: Tensor) -> Any:
    def validate() -> None:
        with torch.no_grad():
            apply(other)

    return _gradients(apply, [x], validate)


def _two_gpus(apply: Apply, x: Tensor, other: Tensor) -> Any:
    return _gradients(apply, [x.cuda(0), other.cuda(1)])  # noqa: FL001 both GPUs are meant


WAYS: dict[str, Callable[[Apply, Tensor, Tensor], Any]] = {
    "called once, on the CPU": lambda apply, x, other: _gradients(apply, [x]),
    "called twice before one backward": lambda apply, x, other: _gradients(apply, [x, other]),
    "called under no_grad before backward": _between,
    "called on two GPUs before one backward": _two_gpus,
}
FURTHER = {"called once in float64": WAYS["called once, on the CPU"], "called once with equal numbers": _with_ties}


@dataclass(frozen=True)
class _Use(Case):
    """The Function in one of `WAYS`; the result is what it returns, and the gradients."""

    def call(self, function: Callable[..., Any]) -> Any:
        way, x, other = self.args
        found = (WAYS | FURTHER)[way](getattr(function, "apply", function), x, other)
        own = isinstance(function, type) and issubclass(function, Function)
        return found if own or found is TODO else "a result without a Function"

    def show(self, name: str) -> str:
        way, x, _ = self.args
        return f"{name}, {way}, with {x.tolist()},"


def cases(random: Random) -> Sequence[Case]:
    pairs = [([[1.0, 5.0, 2.0]], [[9.0, 1.0, 3.0]])]
    for _ in range(4):
        rows, columns = random.randint(1, 3), random.randint(2, 4)
        drawn = [[[float(x) for x in random.sample(range(-10, 10), columns)] for _ in range(rows)] for _ in range(2)]
        pairs.append((drawn[0], drawn[1]))
    tensors = [tuple(torch.tensor(rows, dtype=torch.float32) for rows in pair) for pair in pairs]
    uses = [_Use((way, *pair)) for pair, way in itertools.product(tensors, WAYS)]
    # Two calls of different sizes. The second is the smaller one, so places that are not its own raise no error.
    sizes = torch.tensor([[3.0, 7.0, 5.0], [8.0, 2.0, 6.0]]), torch.tensor([[4.0, 1.0]])
    fractions = torch.tensor([[1 / 3, 2 / 3], [-0.1, -0.7]], dtype=torch.float64)
    ties = torch.tensor([[2.0, 7.0, 7.0], [-4.0, -4.0, -4.0]])
    further = [_Use((way, x, x)) for way, x in zip(FURTHER, (fractions, ties), strict=True)]
    return [*uses, *(_Use((way, *sizes)) for way in list(WAYS)[1:3]), *further]


@wrong
def no_Function(x):
    """autograd knows how to go back through torch's own operations, and the exercise is about one that it does not
    know: write `Largest` as a class derived from `Function`, with `forward` and `backward`.
    """
    return x.max(dim=1, keepdim=True).values
