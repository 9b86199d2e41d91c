"""Post 004, an engineer's notes (2021): in-place errors, checkpoints and Paddle's weights, run line by line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from verdict import verdict

import vgpu
from course.lessons.nb31.paddle_weights import load_paddle_into, slots
from course.lessons.nb31.weight_files import read_weights

INPLACE, CHECKPOINTS, WEIGHTS = "29_inplace_errors", "30_checkpoints", "31_weights_from_elsewhere"
PADDLE = Path(__file__).resolve().parents[2] / "checkpoints" / "paddle"


def batch(size=8):
    """Logits (15, 3, size, size) that need a gradient, and the target that all losses share."""
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(15, 3, size, size, generator=generator).requires_grad_()
    return logits, torch.randint(3, (15, size, size), generator=generator)


def changes_shape(logits, target):
    return 1 - logits.softmax(1).gather(1, target.unsqueeze_(1)).mean()


def changes_it_back(logits, target):
    return F.cross_entropy(logits, target.squeeze_(1))


def reads(logits, target):
    return F.cross_entropy(logits, target.squeeze(1) if target.dim() == 4 else target)


def error_of(losses, order=None):
    """Message of the sum's backward, or of the losses' one by one in `order`; None where it works."""
    logits, target = batch()
    values = [loss(logits, target) for loss in losses]
    try:
        for value in [sum(values)] if order is None else [values[k] for k in order]:
            value.backward(retain_graph=True)
    except RuntimeError as error:
        return str(error)
    return None


@verdict(
    "004",
    "errors in training, 1",
    claim="Several losses share a target, one changes its shape, and backward fails: version 2, expected version 1.",
    ruling="right",
    because="Two losses, `unsqueeze_` before `gather` and `squeeze_` before cross entropy, give the message with its "
    "shape and both versions; in-place changes of shape count as writes.",
    notebook=INPLACE,
    words="The message is the same to the letter",
)
def test_the_message_of_the_notes():
    words = error_of([changes_shape, changes_it_back])
    assert "LongTensor [15, 8, 8]] is at version 2; expected version 1 instead" in words


@verdict(
    "004",
    "errors in training, 1",
    claim='"Hint: the backtrace further above shows the operation that failed to compute its gradient."',
    ruling="incomplete",
    because="That hint appears under anomaly mode only, which the notes must have had on; a plain run hints at anomaly "
    "mode. And the operation it shows is the one that saved the tensor, not the one that wrote to it.",
    notebook=INPLACE,
    words="it mentions a backtrace further above",
)
@pytest.mark.filterwarnings("ignore:Error detected in")
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_the_hint_depends_on_anomaly_mode():
    assert "enable anomaly detection" in error_of([changes_shape, changes_it_back])
    with torch.autograd.set_detect_anomaly(True):
        assert "the backtrace further above" in error_of([changes_shape, changes_it_back])


@verdict(
    "004",
    "errors in training, why it is the loss",
    claim="Type and shape in the message, LongTensor [15, 512, 512], say that it is the target.",
    ruling="incomplete",
    because="They do while no other tensor has both. Today the shape is that at backward, and in the post's torch that "
    "at saving, by its source: it kept a detached tensor.",
    notebook=INPLACE,
    words="## Found by dtype and shape",
)
def test_type_and_shape_are_those_at_backward():
    words = error_of([reads, changes_shape])  # saved as (15, 8, 8)
    assert "LongTensor [15, 1, 8, 8]]" in words


@verdict(
    "004",
    "errors in training, fix 1",
    claim="Give the loss that changes the shape a clone of the target.",
    ruling="right",
    because="The clone has a version of its own. A view made by `unsqueeze` does without the copy.",
    notebook=INPLACE,
    words="## Fix 1: give the writer a clone",
)
def test_a_clone_repairs_it():
    assert error_of([reads, changes_shape]) is not None
    assert error_of([reads, lambda logits, target: changes_shape(logits, target.clone())]) is None


@verdict(
    "004",
    "errors in training, fix 2",
    claim="Call the loss that changes the shape before all the others.",
    ruling="incomplete",
    because="It works when one loss writes and before anything has saved. With two losses that each write to the "
    "target and save it, no order helps.",
    notebook=INPLACE,
    words="## Fix 2: change the order",
)
def test_an_order_repairs_one_writer():
    assert error_of([changes_shape, reads]) is None
    assert error_of([changes_shape, changes_it_back]) is not None
    assert error_of([changes_it_back, changes_shape]) is not None


@verdict(
    "004",
    "errors in training, fix 2, why",
    claim="It works because backward computes the later losses first, and those change no shape.",
    ruling="wrong",
    because="With either order of backward the result is the same, once both losses are computed. What "
    "counts is the version at which each operation saved the target in the forward pass. (Backward "
    "of one loss *before* the next one writes does help.)",
    notebook=INPLACE,
    words="As long as both losses are computed first, the order of backward",
)
def test_the_order_of_backward_does_not_matter():
    for order in ((0, 1), (1, 0)):
        assert error_of([reads, changes_shape], order) is not None
        assert error_of([changes_shape, reads], order) is None


@verdict(
    "004",
    "files for an older loader, program",
    claim="The program takes the names in the file as they are.",
    ruling="incomplete",
    because="A file of DataParallel has `module.` before every name; `update` adds them all, and loading "
    "stops with unexpected keys.",
    notebook=CHECKPOINTS,
    words="names that begin with module.",
)
def test_update_of_wrapped_names():
    model = nn.Linear(2, 2)
    model_dict = model.state_dict()
    with vgpu.virtual_gpus(2):  # DataParallel moves a model to a GPU as soon as there is one
        model_dict.update(nn.DataParallel(nn.Linear(2, 2)).state_dict())
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\).*module\.weight"):
        model.load_state_dict(model_dict)


class Twin(nn.Module):
    """PyTorch's side of notebooks/checkpoints/paddle/make.py."""

    def __init__(self):
        super().__init__()
        backbone = nn.Module()
        conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        backbone.stem = nn.Sequential(conv, nn.BatchNorm2d(4), nn.ReLU())
        backbone.conv = nn.Conv2d(4, 6, 3, stride=2)
        backbone.act = nn.PReLU(6)
        self.backbone, self.hidden, self.norm, self.fc = backbone, nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 10)

    def forward(self, x):
        x = self.backbone.act(self.backbone.conv(self.backbone.stem(x))).mean((2, 3))
        return self.fc(self.norm(self.hidden(x)))


def difference(model):
    """Largest difference to the output that PaddlePaddle 3.3.1 computed."""
    with np.load(PADDLE / "output.npz") as made, torch.no_grad():
        return float((model(torch.from_numpy(made["x"])) - torch.from_numpy(made["y"])).abs().max())


@verdict(
    "004",
    "Paddle's weights",
    claim="Mind whether a convolution has a bias.",
    ruling="right",
    because="Without one the file has no name for it; the map takes what the module has.",
)
def test_bias_or_not():
    names = [slot.paddle for slot in slots(Twin().backbone)]
    assert "stem.0.bias" not in names
    assert "conv.bias" in names


@verdict(
    "004",
    "Paddle's weights",
    claim="Of BatchNorm four arrays move: weight, bias, running_mean, running_var.",
    ruling="right",
    because="In the file the last two are `_mean` and `_variance`. PyTorch's fifth, `num_batches_tracked`, is of use "
    "with momentum=None only. With all four the outputs equal Paddle's at 1e-5; without the last two they do not.",
    notebook=WEIGHTS,
    words="running_mean",
)
def test_four_arrays_of_batch_norm():
    model = Twin().eval()
    load_paddle_into(model, read_weights(PADDLE / "dynamic.pdparams"), skip=["^aux_"])
    assert difference(model) < 1e-5
    norm = model.backbone.stem[1]
    norm.reset_running_stats()
    assert difference(model) > 1e-3


@verdict(
    "004",
    "Paddle's weights",
    claim="Where the frameworks keep weights in different orders, and where keys lie in between, treat and skip them.",
    ruling="right",
    because="By order, two entries of one shape can change places unnoticed; what is skipped has to be named, or it is "
    "an error.",
    notebook=WEIGHTS,
    words="## By order",
)
def test_order_and_skipped_keys():
    static = read_weights(PADDLE / "static.pdparams")
    model = Twin().eval()
    report = load_paddle_into(model, static, order=True, skip=list(static)[-2:])
    assert difference(model) < 1e-5
    assert len(report.skipped) == 2


@verdict(
    "004",
    "Paddle's weights",
    claim="Convolution and BatchNorm are what needs care.",
    ruling="incomplete",
    because="Linear's weight is (in, out) in Paddle: copied as it is, a square one loads and computes something else.",
    notebook=WEIGHTS,
    words="`weight` (in, out)",
)
def test_linear_is_transposed():
    arrays = read_weights(PADDLE / "dynamic.pdparams")
    model = Twin().eval()
    load_paddle_into(model, arrays, skip=["^aux_"])
    model.hidden.weight.data.copy_(arrays["hidden.weight"])
    assert difference(model) > 0.1


@verdict(
    "004",
    "Paddle's weights, program",
    claim="`state_pp = list(_load_state().keys())`, then `torch.FloatTensor(state_pp[n])`.",
    ruling="typo",
    because="The dict is meant, without `list` and `keys`. As printed a list of names is indexed by a name: TypeError.",
    notebook=WEIGHTS,
    words="state_pp = list(",
)
def test_a_list_is_indexed_by_a_name():
    state = read_weights(PADDLE / "dynamic.pdparams")
    with pytest.raises(TypeError, match="list indices must be integers"):
        torch.FloatTensor(list(state.keys())["backbone.conv.weight"])
    assert torch.as_tensor(state["backbone.conv.weight"]).shape == Twin().backbone.conv.weight.shape


@verdict(
    "004",
    "Paddle's weights, program, `state_pp[n]`",
    claim="The names of `named_modules()` find the arrays where names are the same.",
    ruling="wrong",
    because="A file names arrays and not modules, `backbone.conv.weight` and not `backbone.conv`: KeyError, with the "
    "dict, too. `named_parameters()` has the names of a dynamic model's file, without the two statistics of BatchNorm.",
)
def test_modules_are_not_arrays():
    state, backbone = read_weights(PADDLE / "dynamic.pdparams"), Twin()
    convolutions = [name for name, module in backbone.named_modules() if isinstance(module, nn.Conv2d)]
    assert "backbone.conv" in convolutions and not set(convolutions) & set(state)
    assert "backbone.conv.weight" in state and "backbone.conv.weight" in dict(backbone.named_parameters())


@verdict(
    "004",
    "Paddle's weights, program, `//***`",
    claim="`//***` takes the place of the lines of BatchNorm.",
    ruling="typo",
    because="A comment of C++: in Python `//` divides, and nothing comes before it: SyntaxError.",
)
def test_two_slashes_open_no_comment():
    with pytest.raises(SyntaxError):
        compile("if True:\n    //***\n", "listing", "exec")
