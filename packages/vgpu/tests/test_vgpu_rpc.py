"""RPC: tensors on virtual GPUs go where the device maps send them, and fail in TensorPipe's words where none does."""

import pytest
import torch
import vgpu_rpc
from torch.futures import Future
from vgpu_group import on_ranks

import vgpu
from vgpu.rpc import OLDER

rpc = pytest.importorskip("torch.distributed.rpc")
if not (rpc.is_available() and hasattr(rpc, "TensorPipeRpcBackendOptions")):
    pytest.skip("this build has no TensorPipe", allow_module_level=True)
if OLDER:
    pytest.skip("RPC is refused on this version of torch: test_vgpu_rpc_refused.py", allow_module_level=True)
pytest.importorskip("numpy", reason="workers meet by PyTorch's collectives of objects, which need it")

pytestmark = pytest.mark.usefixtures("gpus")


@pytest.mark.parametrize(
    "work",
    [vgpu_rpc.without_maps, vgpu_rpc.with_a_map, vgpu_rpc.cpu_to_gpu, vgpu_rpc.joining],
    ids=lambda work: work.__name__,
)
def test_between_workers(work, tmp_path):
    on_ranks(work, backend=None, JOINED=str(tmp_path / "joined"))


def test_options_keep_maps_and_devices():
    options = rpc.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1}}, devices=["cuda:0"])
    options.set_device_map("worker1", {1: 0})
    options.set_device_map("worker2", {"cpu": 0})
    options.set_devices([0, 1])
    zero, one, cpu = torch.device("cuda:0"), torch.device("cuda:1"), torch.device("cpu")
    assert options.device_maps == {"worker1": {zero: one, one: zero}, "worker2": {cpu: zero}}
    assert options.devices == [zero, one]
    with pytest.raises(ValueError, match="`set_device_map` only supports 1-to-1 mapping"):
        options.set_device_map("worker1", {0: 0})


@pytest.mark.parametrize(
    ("maps", "devices", "words"),
    [
        ({"nobody": {0: 1}}, None, "Node alone has invalid target node names in its device maps"),
        ({"alone": {9: 0}}, None, "Node alone has source devices with invalid indices in its device map for alone"),
        ({"alone": {0: 9}}, None, "Node alone has target devices with invalid indices in its device map for alone"),
        ({"alone": {0: 1}}, [0], "Node alone has unexpected target devices in its device map for alone"),
    ],
)
def test_maps_are_checked_when_workers_meet(maps, devices, words, tmp_path):
    options = rpc.TensorPipeRpcBackendOptions(
        device_maps=maps, devices=devices, init_method=f"file://{tmp_path / 'meet'}"
    )
    with pytest.raises(ValueError, match=words):
        rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)


def test_futures_have_their_results_on_their_devices(gpus):
    future = Future(devices=[0, "cuda:1"])
    child = future.then(lambda done: done.wait().to(1))
    future.set_result(torch.ones(2, device=gpus[0]))
    assert future.wait().device == gpus[0] and child.wait().device == gpus[1]
    wrong = Future(devices=[1])
    wrong.set_result({"nested": [torch.ones(2, device=gpus[0])]})
    with pytest.raises(ValueError, match=r"device\(s\) cuda:0 which are not among the expected device\(s\) cuda:1"):
        wrong.wait()
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
    anywhere = Future()
    anywhere.set_result(torch.ones(2, device=gpus[3]))
    assert anywhere.wait().device == gpus[3]


def test_options_from_before_are_refused(tmp_path):
    vgpu.disable()
    options = rpc.TensorPipeRpcBackendOptions(device_maps={"alone": {0: 1}}, init_method=f"file://{tmp_path / 'meet'}")
    vgpu.enable(2, force=True)
    with pytest.raises(NotImplementedError, match="device maps of RPC that were made before virtual GPUs were enabled"):
        rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)


def test_everything_is_put_back():
    vgpu.disable()
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map("worker1", {0: 1})
    assert "worker1" in options.device_maps and rpc.internal._pickler is rpc.internal.pickle.Pickler
