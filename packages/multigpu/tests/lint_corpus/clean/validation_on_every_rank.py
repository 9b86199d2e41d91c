"""Every rank judges on all rows, and draws rows of its own to train on, by a seed of its own."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def train(net, rows, held_out):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    torch.manual_seed(100 + rank)
    net = DistributedDataParallel(net.cuda(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train_loader = DataLoader(rows, batch_size=8, shuffle=True)
    val_loader = DataLoader(held_out, batch_size=8)
    for batch in train_loader:
        optimizer.zero_grad()
        net(batch.cuda(rank)).mean().backward()
        optimizer.step()
    return [net(batch.cuda(rank)) for batch in val_loader]
