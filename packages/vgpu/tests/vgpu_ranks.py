"""Work for the spawned processes of test_vgpu_processes.py: importable by name in the child."""

import copy
import os
import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


def report(queue: Any, x: torch.Tensor) -> None:
    """What a child finds: devices, and a tensor its parent sent."""
    queue.put((torch.cuda.device_count(), str(x.device), x.tolist(), (x + 1).cpu().tolist()))


def collectives(rank: int) -> None:
    """Every kind of collective, with tensors that lie on this rank's device."""
    mine = torch.full((4,), rank + 1.0, device="cuda")

    def into(collective: Any, *shape: int) -> list:
        out = torch.zeros(*shape, device="cuda")
        collective(out)
        assert out.device == torch.device("cuda", rank)
        return out.tolist()

    total = mine.clone()
    dist.all_reduce(total)
    assert total.tolist() == [3] * 4 and total.device == mine.device
    assert into(lambda out: dist.all_gather_into_tensor(out, mine), 8) == [1] * 4 + [2] * 4
    assert into(lambda out: dist.reduce_scatter_tensor(out, mine), 2) == [3, 3]
    # Elements count, not shapes: HF's and accelerate's `gather` stack, pad and flatten as they like.
    square, row = mine.view(2, 2), mine[:2]
    assert into(lambda out: dist.all_gather_into_tensor(out, square), 8) == [1] * 4 + [2] * 4
    assert into(lambda out: dist.all_gather_into_tensor(out, mine), 2, 4) == [[1] * 4, [2] * 4]
    assert into(lambda out: dist.all_gather_into_tensor(out, mine[0]), 2) == [1, 2]
    assert into(lambda out: dist.reduce_scatter_tensor(out, square), 2) == [3, 3]
    assert into(lambda out: dist.reduce_scatter_tensor(out, mine), 1, 2) == [[3, 3]]
    for collective, out, given, words in (
        (dist.all_gather_into_tensor, mine.clone(), mine, "output tensor size must be equal to world_size times input"),
        (
            dist.reduce_scatter_tensor,
            mine.clone(),
            row,
            "input tensor must be the same size as output size times world",
        ),
        (dist.all_gather_into_tensor, torch.zeros(4, 2, device="cuda").t(), mine, "Tensors must be contiguous"),
    ):
        with pytest.raises(ValueError, match=words):
            collective(out, given)
    assert into(lambda out: dist.all_to_all_single(out, mine), 4) == [1, 1, 2, 2]
    assert into(lambda out: dist.scatter(out, [mine, 2 * mine] if rank == 0 else None, 0), 4) == [rank + 1] * 4
    parts = [torch.zeros_like(mine) for _ in range(2)]
    dist.all_gather(parts, mine)
    assert [p.tolist() for p in parts] == [[1] * 4, [2] * 4]
    objects: list = [None, None]
    dist.all_gather_object(objects, mine)
    assert [str(o.device) for o in objects] == ["cuda:0", "cuda:1"]
    received = mine.clone()
    dist.send(received, 1) if rank == 0 else dist.recv(received, 0)
    assert received.tolist() == [1] * 4
    group = dist.new_group([0, 1], backend="nccl")
    dist.broadcast(total, 1, group=group)
    dist.barrier(device_ids=[rank])
    assert dist.is_nccl_available() and dist.get_backend(group) == "nccl"


def synced_norm(rank: int) -> None:
    """SyncBatchNorm over five rows here and three there is BatchNorm over eight: outputs, gradients, statistics."""
    torch.manual_seed(0)
    reference = nn.BatchNorm2d(3).double()
    nn.init.normal_(reference.weight)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(reference)).cuda()
    rows = torch.randn(8, 3, 2, 2, dtype=torch.float64) * 3 + 1
    mine = slice(0, 5) if rank == 0 else slice(5, 8)
    whole, part = rows.clone().requires_grad_(), rows[mine].cuda().requires_grad_()
    for _ in range(2):  # running statistics move twice
        expected, got = reference(whole), synced(part)
    expected.sin().sum().backward()
    got.sin().sum().backward()
    gradients = torch.stack([synced.weight.grad, synced.bias.grad])
    dist.all_reduce(gradients)
    pairs = [(got, expected[mine]), (part.grad, whole.grad[mine])]
    pairs += [(gradients, torch.stack([reference.weight.grad, reference.bias.grad]))]
    pairs += [(synced.running_mean, reference.running_mean), (synced.running_var, reference.running_var)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-10, atol=1e-12)
    half = synced.half()(part.half())
    assert half.dtype == torch.float16 and half.device == torch.device("cuda", rank)


def offloaded(rank: int) -> None:
    """FSDP that keeps its parameters on the CPU trains as one process does: they move between forward and backward."""
    torch.manual_seed(0)
    reference = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    sharded = FullyShardedDataParallel(
        copy.deepcopy(reference),
        auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
        device_id=rank,
        cpu_offload=CPUOffload(offload_params=True),
    )
    rows = torch.arange(32.0).view(8, 4).sin()
    for module, part in ((sharded, rows[rank::2].cuda()), (reference, rows)):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            module(part).square().mean().backward()
            assert all(p.grad is None or p.grad.device.type == "cpu" for p in module.parameters())
            optimizer.step()
    with FullyShardedDataParallel.summon_full_params(sharded):
        for p, q in zip(sharded.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(p.cpu(), q)


def train(rank: int, port: int, results: Any) -> None:
    """One DDP step of one rank on its virtual GPU; the largest difference from the whole batch on the CPU."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    assert any("over gloo" in str(note.message) for note in notes)
    collectives(rank)
    synced_norm(rank)
    offloaded(rank)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double().cuda()
    reference = copy.deepcopy(net).cpu()
    ddp = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    rows = torch.arange(32.0, dtype=torch.float64).view(8, 4).sin()
    ddp(rows[rank::2].cuda()).square().mean().backward()
    reference(rows).square().mean().backward()
    pairs = zip(net.parameters(), reference.parameters(), strict=True)
    difference = max((p.grad.cpu() - q.grad).abs().max().item() for p, q in pairs)
    results.put((rank, str(net[0].weight.grad.device), difference))
    dist.destroy_process_group()


def one_number(queue) -> None:
    """The first number that a child draws."""
    torch.manual_seed(0)
    queue.put(torch.rand(1, device="cuda").item())


def name_of_gpu(queue) -> None:
    """What a child sees of the profile."""
    queue.put(torch.cuda.get_device_name(1))
