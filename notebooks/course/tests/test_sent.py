"""What a rank hands to collectives is noted, whoever makes the call, with the bytes that a ring sends."""

import sys

import cloudpickle
import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import vgpu
from course.kit.ranks import ranks
from course.kit.sent import Sent


def by_hand():
    """A call of each kind: 40, 80 and 40 bytes of the larger tensor."""
    with Sent() as sent:
        distributed.all_reduce(torch.ones(10).cuda())
        distributed.all_gather_into_tensor(torch.empty(20).cuda(), torch.ones(10).cuda())
        distributed.reduce_scatter_tensor(torch.empty(5).cuda(), torch.ones(10).cuda())
        distributed.barrier()
    return sent.calls, sent.bytes_of_each_gpu(2)


def by_wrappers(kind):
    """A step of a layer of 20 weights without a bias, 80 bytes."""
    net = nn.Linear(4, 5, bias=False).cuda()
    net = DistributedDataParallel(net) if kind == "DDP" else fully_shard(net, mesh=init_device_mesh("cuda", (2,)))
    with Sent() as sent:
        net(torch.ones(3, 4).cuda()).sum().backward()
    return sent.bytes_of_each_gpu(2)


@pytest.fixture(autouse=True)
def two_gpus():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with vgpu.virtual_gpus(2):
        yield


def test_calls_are_noted_with_their_bytes():
    for calls, sent in ranks(2)(by_hand)():
        assert calls == ["all_reduce of 40 bytes", "all_gather of 80 bytes", "reduce_scatter of 40 bytes"]
        assert sent == 2 * 40 // 2 + 80 // 2 + 40 // 2


def test_ddp_sends_gradients_and_fsdp_half_as_much_again():
    assert ranks(2)(by_wrappers)("DDP") == [2 * 80 // 2] * 2
    fsdp = ranks(2)(by_wrappers)("FSDP")
    # 5 rows on 2 ranks are padded to 6: 96 bytes. A root keeps its parameters until backward: one gather less.
    assert fsdp == [2 * 96 // 2] * 2
