"""Work for the spawned processes of test_vgpu_processes.py: importable by name in the child."""

import copy
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import nn


def report(queue: Any, x: torch.Tensor) -> None:
    """What a child finds: devices, and a tensor its parent sent."""
    queue.put((torch.cuda.device_count(), str(x.device), x.tolist(), (x + 1).cpu().tolist()))


def train(rank: int, port: int, results: Any) -> None:
    """One DDP step of one rank on its virtual GPU; the largest difference from the whole batch on the CPU."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
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
