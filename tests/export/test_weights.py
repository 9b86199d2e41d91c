"""Named tensors into any model: wrapped or bare, cast, in part; every name is reported."""

import socket
from unittest import mock

import pytest
import torch
from torch import nn

from frcnn_lite.export.weights import WeightsError, load_weights_into, unwrapped


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))


def data_parallel(module):
    """As on a machine without GPUs, where the wrapper moves nothing."""
    with mock.patch("torch.cuda.is_available", return_value=False):
        return nn.DataParallel(module)


def wrapped_states():
    """Name and state dict of one model, bare and in wrappers."""
    bare = model(1)
    yield "bare", bare.state_dict()
    yield "DataParallel", data_parallel(bare).state_dict()
    yield "DataParallel twice", data_parallel(data_parallel(bare)).state_dict()
    yield "compiled", torch.compile(bare).state_dict()
    yield "DataParallel of compiled", data_parallel(torch.compile(bare)).state_dict()


@pytest.mark.parametrize("wrap", [lambda m: m, data_parallel])
@pytest.mark.parametrize(("name", "state"), list(wrapped_states()), ids=lambda v: v if isinstance(v, str) else "")
def test_any_wrapper_into_any_wrapper(wrap, name, state):
    target = wrap(model(2))
    report = load_weights_into(target, state)
    assert report.is_complete
    assert len(report.loaded) == 9
    assert report.prefix.count("module.") == name.count("DataParallel") + name.count("twice")
    for own, given in zip(target.state_dict().values(), model(1).state_dict().values(), strict=True):
        assert torch.equal(own, given)


@pytest.mark.parametrize(
    ("old", "new", "prefix", "inside"),
    [
        ("", "_fsdp_wrapped_module.", "_fsdp_wrapped_module.", ()),
        ("", "_forward_module.module.", "_forward_module.module.", ()),
        ("3.", "3._checkpoint_wrapped_module.", "", ("_checkpoint_wrapped_module",)),
        ("0.", "_orig_mod.0._orig_mod.", "", ("_orig_mod",)),
    ],
)
def test_a_wrapper_inside_of_names_is_taken_out(old, new, prefix, inside):
    state = {
        name.replace(old, new, 1) if name.startswith(old) else name: t for name, t in model(1).state_dict().items()
    }
    report = load_weights_into(model(2), state)
    assert (report.is_complete, report.prefix, report.inside) == (True, prefix, inside)
    assert all(part in str(report) for part in inside)


def test_one_layer_that_was_compiled():
    compiled = model(1)
    compiled[3] = torch.compile(compiled[3])
    assert load_weights_into(model(2), compiled.state_dict()).inside == ("_orig_mod",)
    assert load_weights_into(compiled, model(2).state_dict()).is_complete


def test_two_names_that_become_one_are_refused():
    twice = {**model().state_dict(), "3._orig_mod.bias": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"'3.bias' and '3._orig_mod.bias' are both '3.bias'"):
        load_weights_into(model(), twice)


def test_distributed(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        state = nn.parallel.DistributedDataParallel(model(1)).state_dict()
    finally:
        torch.distributed.destroy_process_group()
    assert load_weights_into(model(), state).prefix == "module."


def test_child_called_module_keeps_its_name():
    odd = nn.ModuleDict({"module": nn.Linear(2, 2), "other": nn.Linear(2, 2)})
    assert unwrapped(odd.state_dict())[1] == ""
    inner = data_parallel(nn.ModuleDict({"submodule": nn.Linear(2, 2), "le": nn.Linear(2, 2)}))
    assert set(unwrapped(inner.state_dict())[0]) == {"submodule.weight", "submodule.bias", "le.weight", "le.bias"}
    only = nn.ModuleDict({"module": nn.Linear(2, 2)})
    assert load_weights_into(only, only.state_dict()).is_complete


def test_incomplete_weights_change_nothing():
    state = model(1).state_dict()
    del state["3.bias"]
    state["extra"] = torch.zeros(1)
    state["0.weight"] = torch.zeros(2, 1, 5, 5)
    target = model()
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(WeightsError) as error:
        load_weights_into(target, state)
    report = error.value.report
    assert (report.missing, report.unused) == (("3.bias",), ("extra",))
    assert report.mismatched == {"0.weight": ((2, 1, 5, 5), (2, 1, 3, 3))}
    for words in ("missing in the file: 3.bias", "unused by the model: extra", "(2, 1, 5, 5) in the file"):
        assert words in str(error.value)
    assert all(torch.equal(before[name], tensor) for name, tensor in target.state_dict().items())

    partial = load_weights_into(target, state, partial=True)
    assert partial == report
    assert torch.equal(target[3].weight, model(1)[3].weight)
    assert torch.equal(target[3].bias, before["3.bias"])
    assert torch.equal(target[0].weight, before["0.weight"])


def test_nothing_in_common_is_an_error_even_in_part():
    with pytest.raises(ValueError, match="no name of the file fits"):
        load_weights_into(model(), {"encoder.weight": torch.zeros(1)}, partial=True)


def test_casts_are_reported_and_never_to_whole_numbers():
    half = {name: t.half() if t.is_floating_point() else t for name, t in model(1).state_dict().items()}
    target = model()
    report = load_weights_into(target, half)
    assert target[0].weight.dtype == torch.float32
    assert "cast: 8 tensors from torch.float16 to torch.float32" in str(report)
    half["1.num_batches_tracked"] = torch.tensor(1.5)
    with pytest.raises(WeightsError, match="mismatched"):
        load_weights_into(target, half)
