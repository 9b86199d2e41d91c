"""The near misses of plain_ddp_page: each fault of it, repaired or meant."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.middle = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, rows):
        hidden = checkpoint(self.first, rows, use_reentrant=False)
        return self.last(checkpoint(self.middle, hidden, use_reentrant=True))  # its input needs a gradient


def train(rows):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    net = DDP(Scores(16).cuda(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(net.parameters())
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=8, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for count, (x, y) in enumerate(loader):
            last = (count + 1) % 4 == 0
            net.require_backward_grad_sync = last
            loss = nn.functional.mse_loss(net(x.cuda(rank)), y.cuda(rank)) / 4
            loss.backward()
            if (count + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"rank {rank}, epoch {epoch}: {loss.item()}")
