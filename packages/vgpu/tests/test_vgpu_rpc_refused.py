"""RPC on a version of torch for which it is not simulated: refused by name, and before anything is sent."""

import pytest

from vgpu.rpc import OLDER

rpc = pytest.importorskip("torch.distributed.rpc")


@pytest.mark.skipif(not OLDER, reason="on this version of torch RPC is simulated")
@pytest.mark.skipif(not rpc.is_available(), reason="this build has no RPC")
def test_workers_do_not_meet(gpus):
    with pytest.raises(NotImplementedError, match=r"virtual GPUs do not simulate RPC on torch \d"):
        rpc.init_rpc("alone", rank=0, world_size=1)
