"""Helpers that pin: the device is named, constants are found."""

import functools

import pytest
import torch
from torch import nn

from frcnn_lite.parallel.pinning import check_devices, from_numpy, same_device


def test_same_device_names_each_tensor():
    features, rois = torch.ones(1), torch.ones(2, device="meta")
    assert same_device(features=features, output=features * 2) == torch.device("cpu")
    with pytest.raises(ValueError, match="features on cpu, rois on meta"):
        same_device(features=features, rois=rois)
    with pytest.raises(ValueError, match="at least one"):
        same_device()


def test_from_numpy_follows_device_and_float_dtype():
    np = pytest.importorskip("numpy")
    for array in (np.ones(2, np.float32), np.arange(3), np.array([True])):
        made = from_numpy(array, torch.zeros(1, dtype=torch.float64, device="meta"))
        assert made.device.type == "meta" and made.shape == array.shape
        assert made.dtype == (torch.float64 if array.dtype == np.float32 else torch.from_numpy(array).dtype)
        assert np.array_equal(from_numpy(array, torch.zeros(1)).numpy(), array)


class Forgetful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.mean = torch.zeros(3)
        self.cache = {"anchors": (torch.ones(2, 4), 16)}
        self.layers = [nn.ReLU()]
        self.call = lambda x: self.fc(x)
        self.bound = self.fc.forward
        self.part = functools.partial(torch.add, other=self.fc.weight)


def test_what_stays_behind_is_named():
    found = {name: what for name, what, _ in check_devices(nn.Sequential(nn.ReLU(), Forgetful()))}
    assert found == {
        "1.mean": "tensor on cpu",
        "1.cache['anchors'][0]": "tensor on cpu",
        "1.layers[0]": "module ReLU in a container",
        "1.call": "function that keeps a module",
        "1.bound": "function that keeps a module",
    }


def test_buffers_and_recurrent_layers_are_in_order():
    module = nn.Sequential(nn.LSTM(2, 3), nn.BatchNorm1d(3), nn.MultiheadAttention(4, 2), nn.Linear(2, 2))
    module.register_buffer("mean", torch.zeros(3), persistent=False)
    assert check_devices(module) == []


def test_a_second_place_of_a_tensor_that_is_registered_stays_behind():
    """`.to` makes a new buffer, and a replica has weights of its own; what lies in the list is still the old one."""
    module = nn.BatchNorm1d(3)
    module.kept = {"mean": module.running_mean, "weights": [module.weight]}
    found = check_devices(module)
    assert [name for name, _, _ in found] == ["kept['mean']", "kept['weights'][0]"]
    assert {instead for _, _, instead in found} == {"register_buffer(..., persistent=False), read by that name"}
    module.to("meta")
    assert module.running_mean.device.type == "meta" and module.kept["mean"].device.type == "cpu"


def test_a_parameter_elsewhere():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    assert [(name, what) for name, what, _ in check_devices(module)] == [
        ("1.weight", "on meta, 0.weight on cpu"),
        ("1.bias", "on meta, 0.weight on cpu"),
    ]


def test_what_is_found_is_what_replicas_share():
    module = Forgetful()
    replica = module._replicate_for_data_parallel()
    assert replica.mean is module.mean and replica.call is module.call and replica.layers[0] is module.layers[0]
