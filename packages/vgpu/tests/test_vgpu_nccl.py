"""A process group that asks for NCCL: its labels, what it refuses as NCCL does, and what it has that gloo has not."""

import gc
import weakref

import pytest
import torch
import torch.distributed as dist
import vgpu_nccl
from vgpu_group import on_ranks, on_threads

pytestmark = pytest.mark.usefixtures("gpus")


def test_a_group_goes_by_the_rules_of_nccl():
    on_threads(vgpu_nccl.everything)


def test_a_rank_on_the_gpu_of_another_one():
    on_threads(vgpu_nccl.devices, backend=None)


def test_a_rank_that_has_named_its_device_and_uses_a_different_one():
    on_threads(vgpu_nccl.bound)


def test_ranks_that_see_one_gpu_each():
    on_ranks(vgpu_nccl.visible, backend=None)


def test_one_rank_gathers_what_it_gives():
    """NCCL copies as many elements as are given."""
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        taken = [torch.zeros(3, device="cuda")]
        dist.all_gather(taken, torch.ones(2, device="cuda"))
        assert taken[0][:2].tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="simulated only: all_gather of 4 elements into a tensor of 3"):
            dist.all_gather(taken, torch.ones(4, device="cuda"))
    finally:
        dist.destroy_process_group()


def test_a_group_that_is_destroyed_is_gone():
    """One that lived on would leave gloo's threads running, and the interpreter would end by SIGABRT."""
    for backend in ("gloo", "nccl"):
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(1, device="cuda:0"))
        group = weakref.ref(dist.group.WORLD)
        dist.destroy_process_group()
        gc.collect()
        assert group() is None, backend
