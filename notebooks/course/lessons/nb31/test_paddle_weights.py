"""Arrays as Paddle lays them out into a PyTorch model: the same outputs, and every name accounted for."""

import pytest
import torch
from torch import nn

from course.lessons.nb31.paddle_twin import RENAME, TwinOfPaddle
from course.lessons.nb31.paddle_weights import PaddleError, convert, load_paddle_into, slots

THERE = {"running_mean": "_mean", "running_var": "_variance"}


def trained():
    """A model none of whose tensors is what a new model has."""
    torch.manual_seed(1)
    model = TwinOfPaddle().eval()
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5) if "var" in name else tensor.normal_()
    return model


def in_paddle(model):
    """Its tensors as Paddle would store them, written down name by name, with two that training alone needed."""
    arrays = {}
    for name, tensor in model.state_dict().items():
        owner, _, key = name.rpartition(".")
        if key == "num_batches_tracked":
            continue
        if key == "weight" and owner in ("hidden", "classes"):
            tensor = tensor.T
        key = "_weight" if owner == "act" else THERE.get(key, key)
        owner = {"classes": "fc", "hidden": "hidden", "norm": "norm"}.get(owner, f"backbone.{owner}")
        arrays[f"{owner}.{key}"] = tensor.clone()
    return {**arrays, "aux_fc.weight": torch.zeros(6, 10), "aux_fc.bias": torch.zeros(10)}


@pytest.fixture
def theirs():
    return trained()


@pytest.fixture
def arrays(theirs):
    return in_paddle(theirs)


def assert_same(model, theirs):
    x = torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(model.eval()(x), theirs(x))


def test_by_rule(theirs, arrays):
    model = TwinOfPaddle()
    report = load_paddle_into(model, arrays, rename=RENAME, skip=["^aux_"])
    assert_same(model, theirs)
    assert report.is_complete and len(report.matched) == 14
    assert report.matched["stem.1.running_var"] == "backbone.stem.1._variance"
    assert report.matched["act.weight"] == "backbone.act._weight"
    assert report.reshaped == {"hidden.weight": ((6, 6), (6, 6)), "classes.weight": ((6, 10), (10, 6))}
    assert report.skipped == ("aux_fc.weight", "aux_fc.bias")
    assert "skipped: aux_fc.weight, aux_fc.bias" in str(report)


def test_by_order(theirs, arrays):
    numbered = {f"tensor_{k}.w_0": tensor for k, tensor in enumerate(arrays.values())}
    model = TwinOfPaddle()
    report = load_paddle_into(model, numbered, order=True, skip=["tensor_14", "tensor_15"])
    assert_same(model, theirs)
    assert report.matched["stem.0.weight"] == "tensor_0.w_0"


def test_square_linear_is_transposed_too(arrays):
    state, _ = convert(TwinOfPaddle(), arrays, rename=RENAME)
    assert torch.equal(state["hidden.weight"], arrays["hidden.weight"].T)


def test_nothing_is_loaded_when_a_name_is_left_over(arrays):
    model = TwinOfPaddle()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(PaddleError, match=r"unused: aux_fc\.weight, aux_fc\.bias") as error:
        load_paddle_into(model, arrays, rename=RENAME)
    assert error.value.report.unused == ("aux_fc.weight", "aux_fc.bias")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_missing_is_named_as_paddle_would(arrays):
    del arrays["backbone.conv.bias"]
    with pytest.raises(PaddleError, match=r"missing: backbone\.conv\.bias"):
        load_paddle_into(TwinOfPaddle(), arrays, rename=RENAME, skip=["^aux_"])


def test_forgotten_rule_leaves_both_sides_over(arrays):
    with pytest.raises(PaddleError) as error:
        load_paddle_into(TwinOfPaddle(), arrays)
    assert "classes.weight" in error.value.report.missing
    assert "fc.weight" in error.value.report.unused


@pytest.mark.parametrize("order", [False, True])
def test_wrong_shape_is_mismatched(arrays, order):
    arrays["backbone.conv.weight"] = torch.zeros(5, 4, 3, 3)
    with pytest.raises(PaddleError, match=r"mismatched: backbone\.conv\.weight, \(5, 4, 3, 3\) in the file"):
        load_paddle_into(TwinOfPaddle(), arrays, rename=RENAME, skip=["^aux_"], order=order)


def test_order_with_too_few_and_too_many(arrays):
    short = dict(list(arrays.items())[:3])
    _, report = convert(TwinOfPaddle(), short, rename=RENAME, order=True)
    assert len(report.missing) == 11
    assert report.missing[0] == "backbone.stem.1._mean"
    _, report = convert(TwinOfPaddle(), arrays, rename=RENAME, order=True)
    assert report.unused == ("aux_fc.weight", "aux_fc.bias")


def test_conv_with_and_without_bias():
    found = slots(nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.Conv2d(2, 3, 1)))
    assert [slot.paddle for slot in found] == ["0.weight", "1.weight", "1.bias"]


def test_single_layer_has_no_dot():
    assert [slot.paddle for slot in slots(nn.BatchNorm1d(3))] == ["weight", "bias", "_mean", "_variance"]


def test_layer_without_a_known_counterpart_is_refused():
    with pytest.raises(ValueError, match="0 is a LSTM: what Paddle calls its 'weight_ih_l0' is not known"):
        slots(nn.Sequential(nn.LSTM(2, 2)))
