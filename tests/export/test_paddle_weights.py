"""Paddle's weights in PyTorch: outputs equal those of a real Paddle, and every name is accounted for."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from frcnn_lite.export.paddle_weights import PaddleError, convert, load_paddle_into, slots

FILES = Path(__file__).resolve().parents[2] / "notebooks" / "checkpoints" / "paddle"
RENAME = ((r"^(stem|conv|act)\b", r"backbone.\1"), (r"^classes$", "fc"))


class Net(nn.Module):
    """The twin of notebooks/checkpoints/paddle/make.py, with other names."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.conv = nn.Conv2d(4, 6, 3, stride=2)
        self.act = nn.PReLU(6)
        self.hidden = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.classes = nn.Linear(6, 10)

    def forward(self, x):
        x = self.act(self.conv(self.stem(x))).mean((2, 3))
        return self.classes(self.norm(self.hidden(x)))


@pytest.fixture
def model():
    return Net().eval()


@pytest.fixture
def read_weights():
    where = "frcnn_lite.export.weight_files"
    return pytest.importorskip(
        where, reason="it needs frcnn_lite and its checkout, for a file that Paddle wrote"
    ).read_weights


@pytest.fixture
def arrays(read_weights):
    return read_weights(FILES / "dynamic.pdparams")


def error_of(model):
    """Largest difference to what Paddle 3.3.1 computed."""
    with np.load(FILES / "output.npz") as made, torch.no_grad():
        return float((model(torch.from_numpy(made["x"])) - torch.from_numpy(made["y"])).abs().max())


def test_by_rule_equals_paddle(model, arrays):
    report = load_paddle_into(model, arrays, rename=RENAME, skip=["^aux_"])
    assert error_of(model) < 1e-5
    assert len(report.matched) == 14
    assert report.matched["stem.1.running_var"] == "backbone.stem.1._variance"
    assert report.reshaped == {"hidden.weight": ((6, 6), (6, 6)), "classes.weight": ((6, 10), (10, 6))}
    assert report.skipped == ("aux_fc.weight", "aux_fc.bias")
    assert "skipped: aux_fc.weight, aux_fc.bias" in str(report)


def test_by_order_equals_paddle(model, read_weights):
    static = read_weights(FILES / "static.pdparams")
    assert next(iter(static)).startswith("conv2d_")
    names = list(static)
    report = load_paddle_into(model, static, order=True, skip=[f"^{name}$" for name in names[-2:]])
    assert error_of(model) < 1e-5
    assert report.matched["stem.0.weight"] == names[0]


def test_square_linear_is_transposed_too(model, arrays):
    state, _ = convert(model, arrays, rename=RENAME)
    assert torch.equal(state["hidden.weight"], arrays["hidden.weight"].T)
    load_paddle_into(model, arrays, rename=RENAME, skip=["^aux_"])
    with torch.no_grad():
        model.hidden.weight.copy_(arrays["hidden.weight"])
    assert error_of(model) > 0.1


def test_nothing_is_loaded_when_a_name_is_left_over(model, arrays):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(PaddleError, match=r"unused: aux_fc\.weight, aux_fc\.bias") as error:
        load_paddle_into(model, arrays, rename=RENAME)
    assert error.value.report.unused == ("aux_fc.weight", "aux_fc.bias")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_missing_is_named_as_paddle_would(model, arrays):
    del arrays["backbone.conv.bias"]
    with pytest.raises(PaddleError, match=r"missing: backbone\.conv\.bias"):
        load_paddle_into(model, arrays, rename=RENAME, skip=["^aux_"])


def test_forgotten_rule_leaves_both_sides_over(model, arrays):
    with pytest.raises(PaddleError) as error:
        load_paddle_into(model, arrays)
    assert "classes.weight" in error.value.report.missing
    assert "fc.weight" in error.value.report.unused


@pytest.mark.parametrize("order", [False, True])
def test_wrong_shape_is_mismatched(model, arrays, order):
    arrays = {name: tensor for name, tensor in arrays.items() if not name.startswith("aux_")}
    arrays["backbone.conv.weight"] = torch.zeros(5, 4, 3, 3)
    with pytest.raises(PaddleError, match=r"mismatched: backbone\.conv\.weight, \(5, 4, 3, 3\) in the file"):
        load_paddle_into(model, arrays, rename=RENAME, order=order)


def test_order_with_too_few_and_too_many(model, arrays):
    short = dict(list(arrays.items())[:3])
    _, report = convert(model, short, rename=RENAME, order=True)
    assert len(report.missing) == 11
    assert report.missing[0] == "backbone.stem.1._mean"
    _, report = convert(model, arrays, rename=RENAME, order=True)
    assert report.unused == ("aux_fc.weight", "aux_fc.bias")


def test_conv_with_and_without_bias():
    found = slots(nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.Conv2d(2, 3, 1)))
    assert [slot.paddle for slot in found] == ["0.weight", "1.weight", "1.bias"]


def test_single_layer_has_no_dot():
    assert [slot.paddle for slot in slots(nn.BatchNorm1d(3))] == ["weight", "bias", "_mean", "_variance"]


def test_layer_without_a_known_counterpart_is_refused():
    with pytest.raises(ValueError, match="0 is a LSTM: what Paddle calls its 'weight_ih_l0' is not known"):
        slots(nn.Sequential(nn.LSTM(2, 2)))


def test_in_paddle_itself(tmp_path, model, read_weights):
    """Where PaddlePaddle is installed: save afresh, load here, compare outputs."""
    paddle = pytest.importorskip("paddle")
    linear, norm = paddle.nn.Linear(6, 6), paddle.nn.BatchNorm1D(6)
    net = paddle.nn.Sequential(linear, norm)
    net.eval()
    paddle.save(net.state_dict(), str(tmp_path / "net.pdparams"))
    twin = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)).eval()
    load_paddle_into(twin, read_weights(tmp_path / "net.pdparams"))
    x = np.random.RandomState(0).randn(4, 6).astype("f4")
    assert np.allclose(twin(torch.from_numpy(x)).detach().numpy(), net(paddle.to_tensor(x)).numpy(), atol=1e-5)
