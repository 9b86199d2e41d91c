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


@pytest.mark.parametrize("dtype, count", [(torch.float32, 3), (torch.float32, 7), (torch.int32, 5)])
def test_a_message_that_the_other_rank_does_not_expect(dtype, count):
    """Gloo ends the process where a message is longer than its buffer, and says nothing of a different dtype."""

    def second_message_differs(rank):
        first = torch.ones(2, 2, dtype=torch.float64, device="cuda")
        dist.send(first, 1) if rank == 0 else dist.recv(first.view(4), 0)
        if rank == 0:
            dist.send(torch.ones(5, device="cuda"), 1)
        else:
            dist.recv(torch.empty(count, dtype=dtype, device="cuda"), 0)

    with pytest.raises(RuntimeError, match="simulated only: a rank sends what the other does not expect") as caught:
        on_threads(second_message_differs)
    sent, taken = str(caught.value).splitlines()[1:]
    assert sent.startswith("rank 0: send of float32, 5 elements, at test_vgpu_nccl.py:")
    assert taken.startswith(f"rank 1: recv of {str(dtype).removeprefix('torch.')}, {count} elements, at test_vgpu_")


def test_tags_of_messages_say_nothing():
    """With gloo the message of the tag would arrive; with NCCL the one that was sent first does."""

    def swapped(rank):
        one, two = torch.ones(1, device="cuda"), torch.full((1,), 2.0, device="cuda")
        if rank == 0:
            for work in [dist.isend(one, 1, tag=1), dist.isend(two, 1, tag=2)]:
                work.wait()
            return None
        taken = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda")
        dist.recv(taken[0], 0, tag=2)
        dist.recv(taken[1], 0, tag=1)
        return taken[0].item(), taken[1].item()

    assert on_threads(swapped)[1] == (1, 2)


def test_a_group_that_is_destroyed_is_gone():
    """One that lived on would leave gloo's threads running, and the interpreter would end by SIGABRT."""
    for backend in ("gloo", "nccl"):
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(1, device="cuda:0"))
        group = weakref.ref(dist.group.WORLD)
        dist.destroy_process_group()
        gc.collect()
        assert group() is None, backend
