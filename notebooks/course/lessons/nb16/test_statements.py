"""Statements in the prose of notebook 16 that no output shows, run again."""

import pytest
import torch
from told import cell, says
from torch import nn
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable

from course.lessons.nb16.gradcheck_says import RIGHT, UNSTEADY, WRONG, gradcheck_says
from course.lessons.nb16.ten_digits import DIGITS, HALVES, ROIS, WHOLE, Layer, ends, wrong_digits
from frcnn_lite import ops

pytestmark = pytest.mark.virtual_gpus(2)
NUMBERS = {"DIGITS": DIGITS, "ROIS": ROIS, "WHOLE": WHOLE, "HALVES": HALVES}


@pytest.fixture
def names():
    """What the notebook's cells define, up to `Saved` and `Kernel`."""
    given = {"torch": torch, "nn": nn, "Function": Function, "Layer": Layer, "ends": ends, "print": lambda *words: None}
    given |= {"gpus": [torch.device("cuda", k) for k in (0, 1)], **NUMBERS}
    for start in ("def pool", "class Pool", "class Saved"):
        exec(cell("16", start), given)
    exec(cell("16", "class Kernel").partition("\n\n\n")[0], given)
    exec(cell("16", "class Attribute").partition("\n\n\n")[0], given)
    return given


def test_ten_lines_pool_as_the_operator_does(names):
    draw = torch.Generator().manual_seed(0)
    features = torch.rand(2, 3, 9, 12, generator=draw)
    rois = torch.tensor([[0.0, 0, 0, 5, 7], [1, 2, 1, 11, 8], [1, 4, 3, 9, 6], [0, 3, 3, 3, 3]])
    values, argmax = ops.roi_pool_with_argmax(features, rois, 2)
    found = names["pool"](features, rois)
    assert torch.equal(found[0], values) and torch.equal(found[1].int(), argmax)
    leaf, weights = features.requires_grad_(), torch.rand(values.shape, generator=draw)
    (right,) = torch.autograd.grad((ops.roi_pool(leaf, rois, 2) * weights).sum(), leaf)
    torch.testing.assert_close(names["send_back"](weights, argmax.long(), rois, features.shape), right)
    assert says("16", "Ten lines of Python are the kernel here.")


def test_of_two_gpus_one_is_wrong_in_every_step(names):
    """Which one depends on the threads."""
    exec(cell("16", "readers = {}").partition("\n\n\nwrong =")[0], names)
    for _ in range(5):
        found = wrong_digits(lambda digits: nn.DataParallel(Layer(names["Moved"]))(digits, HALVES))
        assert found in ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])
    assert says("16", "Half of the batch trains the wrong cells")


def test_gradcheck_calls_forward_128_times_more(names):
    calls, smooth = [], torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)

    def noted(x):
        calls.append("forward")
        pooled = names["Pool"].apply(x, WHOLE)
        if pooled.requires_grad:
            pooled.register_hook(lambda gradient: calls.append("backward"))
        return pooled

    gradcheck(noted, (smooth,))
    assert calls.index("backward") == 129
    assert says("16", "calls forward 128 times more")


class Unsteady(Function):
    """A gradient that grows a little from call to call, as one does that is added up in no fixed order."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        Unsteady.calls += 1
        return (2 + 1e-9 * Unsteady.calls) * gradient


class Trebled(Unsteady):
    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


def test_gradcheck_has_three_verdicts():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck_says(torch.square, (x,)) == RIGHT
    assert gradcheck_says(Trebled.apply, (x,)) == WRONG
    assert gradcheck_says(Unsteady.apply, (x,)) == UNSTEADY
    assert says("16", "It also runs backward twice.")


@pytest.mark.parametrize(("name", "kept"), [("Attribute", True), ("Saved", False)])
def test_what_was_saved_is_let_go_after_backward(names, name, kept):
    picture, roi = torch.rand(1, 64, 8, 8, device="cuda:0", requires_grad=True), WHOLE.cuda(0)
    pooled = names[name].apply(picture, roi)
    before = torch.cuda.memory_allocated(0)
    pooled.sum().backward()
    picture.grad = None
    freed = before - torch.cuda.memory_allocated(0)
    assert freed == (0 if kept else 64 * 4 * 8)  # the argmax, eight bytes for each output
    assert says("16", "It also lets go of the tensor after `backward`")


def test_a_kernel_in_backward_drops_a_penalty(names):
    """`once_differentiable` raises there."""
    saved, kernel = names["Saved"], names["Kernel"]
    once = type("Once", (saved,), {"backward": staticmethod(once_differentiable(kernel.backward))})

    def penalised(function):
        picture = DIGITS[3:4].clone().requires_grad_()
        pooled = function.apply(picture, WHOLE)
        (slope,) = torch.autograd.grad(pooled.square().sum(), picture, create_graph=True)
        (pooled.sum() + slope.square().sum()).backward()
        return int(picture.grad.sum())

    assert penalised(saved) > 100 and penalised(kernel) == 4  # the 4 are those of the loss alone
    with pytest.raises(RuntimeError, match="once_differentiable"):
        penalised(once)


@pytest.mark.parametrize("marked", [False, True])
def test_a_function_that_writes_over_its_input_marks_it(marked):
    class Clamp(Function):
        @staticmethod
        def forward(ctx, x):
            x.clamp_(min=0)
            if marked:
                ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * (x > 0)

    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    h = 3 * x
    Clamp.apply(h)
    h.sum().backward()
    assert h.tolist() == [0, 6] and x.grad.tolist() == ([0, 3] if marked else [3, 3])


@pytest.mark.parametrize("marked", [False, True])
def test_positions_in_floats_have_no_gradient(names, marked):
    class WithPlaces(names["Saved"]):
        @staticmethod
        def forward(ctx, features, rois):
            values, places = names["Saved"].forward(ctx, features, rois), names["pool"](features, rois)[1].float()
            if marked:
                ctx.mark_non_differentiable(places)
            return values, places

        @staticmethod
        def backward(ctx, gradient, of_places):
            return names["Saved"].backward(ctx, gradient)

    picture = DIGITS[3:4].clone().requires_grad_()
    _, places = WithPlaces.apply(picture, WHOLE)
    assert places.requires_grad == (not marked)
    if not marked:
        places.mean().backward()
        assert not picture.grad.any()


def test_a_gradient_that_nobody_needs_is_asked_for_in_vain():
    needed = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            needed.append(ctx.needs_input_grad)
            return gradient * y, gradient * x if ctx.needs_input_grad[1] else None

    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)
    Product.apply(x, y).backward()
    assert needed == [(True, False)] and x.grad == 3 and y.grad is None


@pytest.mark.parametrize("cast", [False, True])
def test_under_autocast_a_function_gets_float16(cast):
    seen = []

    def forward(ctx, x):
        seen.append(x.dtype)
        return 2 * x

    def backward(ctx, gradient):
        return 2 * gradient

    if cast:
        forward = torch.amp.custom_fwd(forward, device_type="cuda", cast_inputs=torch.float32)
        backward = torch.amp.custom_bwd(backward, device_type="cuda")
    double = type("Double", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    conv = nn.Conv2d(1, 1, 1).cuda()
    with torch.autocast("cuda"):
        double.apply(conv(DIGITS.cuda())).sum().backward()
    assert seen == [torch.float32 if cast else torch.float16] and conv.weight.grad.dtype == torch.float32


def test_on_the_layer_two_gpus_are_right_and_ten_calls_are_not(names):
    class OnLayer(Function):
        @staticmethod
        def forward(ctx, features, rois, layer):
            values, layer.argmax = names["pool"](features, rois)
            ctx.layer, ctx.rois, ctx.size = layer, rois, features.shape
            return values

        @staticmethod
        def backward(ctx, gradient):
            return names["send_back"](gradient, ctx.layer.argmax, ctx.rois, ctx.size), None, None

    class Keeping(nn.Module):
        def forward(self, features, rois):
            return OnLayer.apply(features, rois, self)

    layer = Keeping()
    assert not wrong_digits(lambda digits: nn.DataParallel(layer)(digits, HALVES))
    assert len(wrong_digits(lambda digits: torch.cat([layer(digit[None], WHOLE) for digit in digits]))) == 9
    assert says("16", "give a right gradient, and ten calls on one GPU nine wrong ones")


def test_accumulation_is_right_until_the_losses_are_added_up(names):
    def accumulated(added):
        picture = DIGITS.clone().requires_grad_()
        losses = (names["Pool"].apply(digit[None], WHOLE).sum() for digit in picture)
        sum(losses).backward() if added else [loss.backward() for loss in losses]
        return picture.grad

    right = torch.autograd.grad(names["Saved"].apply(leaf := DIGITS.clone().requires_grad_(), ROIS).sum(), leaf)[0]
    assert torch.equal(accumulated(added=False), right) and not torch.equal(accumulated(added=True), right)
