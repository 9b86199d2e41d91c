"""RPC: device maps are refused by name, and tensors on virtual GPUs are not sent without one, as on GPUs."""

import traceback

import pytest
import vgpu_rpc
from vgpu_group import on_ranks

import vgpu

rpc = pytest.importorskip("torch.distributed.rpc")
if not (rpc.is_available() and hasattr(rpc, "TensorPipeRpcBackendOptions")):
    pytest.skip("this build has no TensorPipe", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("gpus")


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: rpc.TensorPipeRpcBackendOptions().set_device_map("worker1", {0: 1}), "set_device_map"),
        (lambda: rpc.TensorPipeRpcBackendOptions().set_devices(["cuda:0"]), "set_devices"),
        (lambda: rpc.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1}}), "device_maps"),
        (lambda: rpc.TensorPipeRpcBackendOptions(devices=["cuda:0"]), "devices"),
    ],
)
def test_device_maps_are_refused_at_the_programs_line(use, name):
    with pytest.raises(
        NotImplementedError, match=rf"device maps of RPC \(TensorPipeRpcBackendOptions, {name}\)"
    ) as caught:
        use()
    assert traceback.extract_tb(caught.tb)[1].filename == __file__


def test_calls_between_workers():
    on_ranks(vgpu_rpc.calls, backend=None)


def test_everything_is_put_back():
    vgpu.disable()
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map("worker1", {0: 1})
    assert "worker1" in options.device_maps and rpc.internal._pickler is rpc.internal.pickle.Pickler
