"""Files that a real Paddle wrote, in PyTorch: the outputs are equal."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from course.lessons.nb31.paddle_twin import RENAME, TwinOfPaddle
from course.lessons.nb31.paddle_weights import load_paddle_into
from course.lessons.nb31.weight_files import read_weights

FILES = Path(__file__).resolve().parents[3] / "checkpoints" / "paddle"


@pytest.fixture
def model():
    return TwinOfPaddle().eval()


@pytest.fixture
def arrays():
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


def test_by_order_equals_paddle(model):
    static = read_weights(FILES / "static.pdparams")
    assert next(iter(static)).startswith("conv2d_")
    names = list(static)
    report = load_paddle_into(model, static, order=True, skip=[f"^{name}$" for name in names[-2:]])
    assert error_of(model) < 1e-5
    assert report.matched["stem.0.weight"] == names[0]


def test_a_square_linear_that_is_not_transposed_gives_different_outputs(model, arrays):
    load_paddle_into(model, arrays, rename=RENAME, skip=["^aux_"])
    with torch.no_grad():
        model.hidden.weight.copy_(arrays["hidden.weight"])
    assert error_of(model) > 0.1


def test_in_paddle_itself(tmp_path, model):
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
