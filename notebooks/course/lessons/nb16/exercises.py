"""Exercises of notebook 16: a Function that forgets nobody's call, and the test that catches one that does."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function, gradcheck

from course.kit.learn.exercise import TODO, Case, Exercise, Mistake, Program, Trial
from frcnn_lite import ops
from frcnn_lite.ops.roi_pool import plain_scatter

Apply = Callable[[Tensor], Tensor]


# ---- 16.Largest ------------------------------------------------------------------------------------------------------


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


class _OnClass(Function):
    places: Any = None

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        _OnClass.places = x.argmax(dim=1, keepdim=True)
        ctx.size = x.shape
        return x.gather(1, _OnClass.places)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, _OnClass.places, gradient)


class _Moved(_OnClass):
    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, _OnClass.places.to(gradient.device), gradient)


class _SlotForEachGpu(Largest):
    places: ClassVar[dict[torch.device, Tensor]] = {}

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        _SlotForEachGpu.places[x.device] = x.argmax(dim=1, keepdim=True)
        ctx.size = x.shape
        return x.gather(1, _SlotForEachGpu.places[x.device])

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.new_zeros(ctx.size).scatter(1, _SlotForEachGpu.places[gradient.device], gradient)


class _Stack(Largest):
    places: ClassVar[list[Tensor]] = []

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        _Stack.places.append(x.argmax(dim=1, keepdim=True))
        ctx.size = x.shape
        return x.gather(1, _Stack.places[-1])

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        places = _Stack.places.pop().to(gradient.device)
        return gradient.new_zeros(ctx.size).scatter(1, places, gradient)


class _Ones(Largest):
    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size).scatter(1, places, 1.0)


class _SizeOnClass(Largest):
    size: Any = None

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        _SizeOnClass.size = x.shape
        return Largest.forward(ctx, x)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(_SizeOnClass.size).scatter(1, places, gradient)


class _BareCuda(Largest):
    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.size).cuda().scatter(1, places, gradient)  # noqa: FL001, FL002 the mistake


class _Float32(Largest):
    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.size, device=gradient.device).scatter(1, places, gradient.float())


class _AllThatTie(Function):
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
    "called once": lambda apply, x, other: _gradients(apply, [x]),
    "called twice before one backward": lambda apply, x, other: _gradients(apply, [x, other]),
    "called under no_grad before backward": _between,
    "called on two GPUs before one backward": _two_gpus,
}
FURTHER = {"called once in float64": WAYS["called once"], "called once with equal numbers": _with_ties}


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


def _uses(random: Random) -> Sequence[Case]:
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


# ---- 16.test_pool ----------------------------------------------------------------------------------------------------


def test_pool(pool: Callable[[Tensor, Tensor], Tensor], features: Tensor, rois: Tensor) -> None:
    assert gradcheck(lambda x: pool(x, rois), (features,))

    def gradient(call_between: bool) -> Tensor:
        pooled = pool(features, rois)
        if call_between:
            pool(-features, rois)
        return torch.autograd.grad(pooled.sum(), features)[0]

    assert torch.equal(gradient(True), gradient(False))


class _Pool(Function):
    """RoI pooling that keeps what backward needs on the object that `find` returns, or in ctx."""

    @staticmethod
    def forward(ctx, features, rois, put, get, formula):  # type: ignore[no-untyped-def]
        values, argmax = ops.roi_pool_with_argmax(features, rois, 3)
        note = SimpleNamespace(argmax=argmax, images=rois[:, 0].long(), size=list(features.shape))
        if put is None:
            ctx.note = note
        else:
            put(note, features.device)
        ctx.get, ctx.formula = get, formula
        return values

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        note = ctx.note if ctx.get is None else ctx.get(gradient.device)
        ones = plain_scatter(torch.ones_like(gradient), note.argmax, note.images, note.size)
        if ctx.formula == "ones":
            return ones, None, None, None, None
        found = plain_scatter(gradient, note.argmax, note.images, note.size)
        if ctx.formula == "mean":  # of the outputs that came from one cell
            found = found / ones.clamp(min=1)
        return found, None, None, None, None


def _programs() -> list[Program]:
    slot: dict[Any, SimpleNamespace] = {}
    stack: list[SimpleNamespace] = []
    last: list[SimpleNamespace] = [SimpleNamespace()]

    def keep(note: SimpleNamespace, device: torch.device) -> None:
        last[0] = note

    return [
        Program("a right pooling, which keeps its argmax in ctx", lambda x, b: _Pool.apply(x, b, None, None, "sum")),
        Program(
            "a pooling that keeps the argmax of its last call",
            lambda x, b: _Pool.apply(x, b, keep, lambda device: last[0], "sum"),
        ),
        Program(
            "a pooling that keeps an argmax for each GPU",
            lambda x, b: _Pool.apply(x, b, lambda n, d: slot.update({d: n}), lambda d: slot[d], "sum"),
        ),
        Program(
            "a pooling that keeps its argmax on a stack",
            lambda x, b: _Pool.apply(x, b, lambda n, d: stack.append(n), lambda d: stack.pop(), "sum"),
        ),
        Program(
            "a pooling that does not add up where bins overlap",
            lambda x, b: _Pool.apply(x, b, None, None, "mean"),
        ),
        Program(
            "a pooling that does not use the gradient that it is given",
            lambda x, b: _Pool.apply(x, b, None, None, "ones"),
        ),
        Program("the operator of this project", lambda x, b: ops.roi_pool(x, b, 3)),
    ]


def _trials(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    trials = []
    for program in _programs():
        features = torch.randperm(2 * 36, generator=generator).double().view(2, 1, 6, 6) - 20  # without ties
        rois = torch.tensor([[0.0, 0, 0, 4, 4], [1.0, 1, 0, 5, 4]])  # 5 rows in 3 bins: neighbours share one
        trials.append(_PoolTrial((program, features.requires_grad_(), rois)))
    return trials


@dataclass(frozen=True)
class _PoolTrial(Trial):
    """A trial that says what its map begins with."""

    def show(self, name: str) -> str:
        program, features, rois = self.args
        first = features.flatten()[:3].int().tolist()
        return f"{name}({program}, a map that begins with {first}, {len(rois)} boxes)"


def _gradcheck_only(pool: Any, features: Tensor, rois: Tensor) -> None:
    assert gradcheck(lambda x: pool(x, rois), (features,))


def _no_gradcheck(pool: Any, features: Tensor, rois: Tensor) -> None:
    pooled = pool(features, rois)
    pool(-features, rois)
    (found,) = torch.autograd.grad(pooled.sum(), features)
    (alone,) = torch.autograd.grad(pool(features, rois).sum(), features)
    assert torch.equal(found, alone)


def _same_input(pool: Any, features: Tensor, rois: Tensor) -> None:
    assert gradcheck(lambda x: pool(x, rois), (features,))
    pooled = pool(features, rois)
    pool(features, rois)
    (found,) = torch.autograd.grad(pooled.sum(), features)
    (alone,) = torch.autograd.grad(pool(features, rois).sum(), features)
    assert torch.equal(found, alone)


def _backward_through_both(pool: Any, features: Tensor, rois: Tensor) -> None:
    assert gradcheck(lambda x: pool(x, rois), (features,))
    one, two = features.detach().clone().requires_grad_(), (-features).detach().requires_grad_()
    (pool(one, rois).sum() + pool(two, rois).sum()).backward()
    for leaf in (one, two):
        (alone,) = torch.autograd.grad(pool(leaf, rois).sum(), leaf)
        assert torch.equal(leaf.grad, alone)  # type: ignore[arg-type]


def _values_only(pool: Any, features: Tensor, rois: Tensor) -> None:
    pooled = pool(features, rois)
    pool(-features, rois)
    assert torch.equal(pooled, pool(features, rois))


def _returns_the_comparison(pool: Any, features: Tensor, rois: Tensor) -> Any:
    return gradcheck(lambda x: pool(x, rois), (features,), raise_exception=False)


EXERCISES = (
    Exercise(
        key="16.Largest",
        task="A Function whose `forward(ctx, x)` returns the largest number of each row of x (rows, columns), as "
        "(rows, 1), and whose gradient is right however often, and on however many GPUs, it is called before backward.",
        reference=Largest,
        cases=_uses,
        hints=(
            "What does backward need that only forward knows? Two things: where the largest numbers were, and the "
            "shape of x.",
            "`ctx` belongs to one call. A tensor goes into `ctx.save_for_backward(places)`, and a shape into an "
            "attribute, `ctx.size = x.shape`.",
            "In backward, `(places,) = ctx.saved_tensors`, and then "
            "`gradient.new_zeros(ctx.size).scatter(1, places, gradient)`.",
        ),
        mistakes=(
            Mistake(
                "on the class",
                "this is what a Function gives that keeps the places on its class. There is one class for all calls, "
                "so backward reads what the last call wrote, on whichever GPU that was.",
                "an instance that keeps its gradient, in pytorch/pytorch issue 16947, 2019",
                answers=(_OnClass,),
            ),
            Mistake(
                "the size on the class",
                "this is what a Function gives that keeps the places in ctx and the size of x on its class. A call "
                "with fewer rows or columns changes it before backward reads it.",
                answers=(_SizeOnClass,),
            ),
            Mistake(
                "a bare .cuda()",
                "this is what zeros give that a bare `.cuda()` puts on the current GPU, wherever the gradient is. "
                "`gradient.new_zeros(...)` puts them beside it.",
                answers=(_BareCuda,),
            ),
            Mistake(
                "moved",
                "this is what a Function gives that moves the places to the GPU of the gradient and leaves them where "
                "all calls share them. There is no error, and the gradient is that of a different call.",
                "a user who met the error of tensors on different GPUs in pytorch/pytorch issue 821, 2017",
                answers=(_Moved,),
            ),
            Mistake(
                "a slot for each GPU",
                "this is what a Function gives that has a slot for each GPU. Two GPUs do not disturb each other, but "
                "two calls on the same GPU do.",
                answers=(_SlotForEachGpu,),
            ),
            Mistake(
                "a stack",
                "this is what a Function gives that keeps the places on a stack. Backward runs through the calls in "
                "reverse order, so it often finds its own on top, but not after a call without a backward, and not on "
                "two GPUs, whose backwards run at the same time.",
                answers=(_Stack,),
            ),
            Mistake(
                "ones",
                "this gradient has 1 where the largest numbers were, which is the gradient of a sum. In general "
                "`gradient` holds what the loss does to each output, and it has to be passed on.",
                "a test with `output.sum().backward()`, as in the notes on simple-faster-rcnn-pytorch, 2017, cannot "
                "see it",
                answers=(_Ones,),
            ),
            Mistake(
                "float32 only",
                "in float32 this is right, and in float64 it is rounded: the zeros are made in float32, whatever the "
                "gradient is. `gradient.new_zeros(...)` takes over its dtype as well as its device.",
                answers=(_Float32,),
            ),
            Mistake(
                "all that tie",
                "this is right while a row has one largest number. Of several that are equal, each gets the whole "
                "gradient here, so the row gets it several times. The output is one number: send its gradient to the "
                "cell that `argmax` names.",
                answers=(_AllThatTie,),
            ),
            Mistake(
                "no Function",
                "autograd knows how to go back through torch's own operations, and the exercise is about one that it "
                "does not know: write `Largest` as a class derived from `Function`, with `forward` and `backward`.",
                answers=(lambda x: x.max(dim=1, keepdim=True).values,),
            ),
        ),
    ),
    Exercise(
        key="16.test_pool",
        task="A test of a RoI pooling: `pool(features, rois)` returns the pooled values. Pass for a pooling with a "
        "right gradient, and fail for one whose gradient is wrong, alone or after a second call.",
        reference=test_pool,
        cases=_trials,
        hints=(
            "Two things can be wrong: the formula of backward, and what it remembers. `gradcheck` is made for one of "
            "them.",
            "For the second: pool, then pool something *different*, and only then take the gradient of the first "
            "result. It has to be what it is without the call in between.",
            "`torch.autograd.grad(pooled.sum(), features)` gives the gradient and leaves nothing behind. "
            "`-features` is a map whose largest cells are different ones.",
        ),
        mistakes=(
            Mistake(
                "calls that do not differ",
                "this is how a test ends whose calls do not differ enough. Those of `gradcheck` are a millionth apart, "
                "and a second call with the same numbers leaves the right numbers behind. Let the second call get a "
                "different map, and compare all cells of the gradient: its sum is the same, wherever it goes.",
                "a Function that gradcheck calls right, in pytorch/pytorch issue 58509, 2021",
                answers=(_gradcheck_only, _same_input),
            ),
            Mistake(
                "no gradcheck",
                "this is how a test ends that compares the pooling with itself. A backward that is always wrong in the "
                "same way passes.",
                "an operator of a published library that gradcheck rejects: latkins/trifast issue 5, 2025",
                answers=(_no_gradcheck,),
            ),
            Mistake(
                "backward through both",
                "this is how a test ends whose backward goes through both calls, in reverse order: a stack hands each "
                "call its own argmax. A call without a backward, such as one for validation, is the harder test.",
                answers=(_backward_through_both,),
            ),
            Mistake(
                "never fails",
                "every program passes this test. Either it never raises anything (a test that *returns* False has "
                "passed; write `assert`), or it compares what is the same in all of these programs, such as what "
                "forward returns.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_values_only, _returns_the_comparison),
            ),
        ),
    ),
)
