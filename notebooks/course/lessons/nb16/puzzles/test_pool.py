"""A test of a RoI pooling: `pool(features, rois)` returns the pooled values. Pass for a pooling with a right gradient,
and fail for one whose gradient is wrong, alone or after a second call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, gradcheck

from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import ops
from frcnn_lite.ops.roi_pool import plain_scatter

hints = (
    "Two things can be wrong: the formula of backward, and what it remembers. `gradcheck` is made for one of them.",
    "For the second: pool, then pool something *different*, and only then take the gradient of the first "
    "result. It has to be what it is without the call in between.",
    "`torch.autograd.grad(pooled.sum(), features)` gives the gradient and leaves nothing behind. "
    "`-features` is a map whose largest cells are different ones.",
)


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


def cases(random: Random) -> Sequence[Case]:
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


@wrong
def calls_that_do_not_differ(pool: Any, features: Tensor, rois: Tensor) -> None:
    """this is how a test ends whose calls do not differ enough. Those of `gradcheck` are a millionth apart, and a
    second call with the same numbers leaves the right numbers behind. Let the second call get a different map, and
    compare all cells of the gradient: its sum is the same, wherever it goes.

    Source: a Function that gradcheck calls right, in pytorch/pytorch issue 58509, 2021
    """
    assert gradcheck(lambda x: pool(x, rois), (features,))


@also(calls_that_do_not_differ)
def same_input(pool: Any, features: Tensor, rois: Tensor) -> None:
    assert gradcheck(lambda x: pool(x, rois), (features,))
    pooled = pool(features, rois)
    pool(features, rois)
    (found,) = torch.autograd.grad(pooled.sum(), features)
    (alone,) = torch.autograd.grad(pool(features, rois).sum(), features)
    assert torch.equal(found, alone)


@wrong
def no_gradcheck(pool: Any, features: Tensor, rois: Tensor) -> None:
    """this is how a test ends that compares the pooling with itself. A backward that is always wrong in the same way
    passes.

    Source: an operator of a published library that gradcheck rejects: latkins/trifast issue 5, 2025
    """
    pooled = pool(features, rois)
    pool(-features, rois)
    (found,) = torch.autograd.grad(pooled.sum(), features)
    (alone,) = torch.autograd.grad(pool(features, rois).sum(), features)
    assert torch.equal(found, alone)


@wrong
def backward_through_both(pool: Any, features: Tensor, rois: Tensor) -> None:
    """this is how a test ends whose backward goes through both calls, in reverse order: a stack hands each call its own
    argmax. A call without a backward, such as one for validation, is the harder test.
    """
    assert gradcheck(lambda x: pool(x, rois), (features,))
    one, two = features.detach().clone().requires_grad_(), (-features).detach().requires_grad_()
    (pool(one, rois).sum() + pool(two, rois).sum()).backward()
    for leaf in (one, two):
        (alone,) = torch.autograd.grad(pool(leaf, rois).sum(), leaf)
        assert torch.equal(leaf.grad, alone)  # type: ignore[arg-type]


@wrong
def never_fails(pool: Any, features: Tensor, rois: Tensor) -> None:
    """every program passes this test. Either it never raises anything (a test that *returns* False has passed; write
    `assert`), or it compares what is the same in all of these programs, such as what forward returns.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """
    pooled = pool(features, rois)
    pool(-features, rois)
    assert torch.equal(pooled, pool(features, rois))


@also(never_fails)
def returns_the_comparison(pool: Any, features: Tensor, rois: Tensor) -> Any:
    return gradcheck(lambda x: pool(x, rois), (features,), raise_exception=False)
