import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM_STEPS = 4


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    ds = TensorDataset(torch.randn(64, 10), torch.randint(2, (64,)))
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, 8, sampler=sampler)
    model = DDP(nn.Linear(10, 2).cuda(), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    crit = nn.CrossEntropyLoss()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            if (i + 1) % ACCUM_STEPS != 0:
                with model.no_sync():
                    loss = crit(model(x.cuda()), y.cuda())
                    loss.backward()  # BUG FL022
            else:
                loss = crit(model(x.cuda()), y.cuda())
                loss.backward()
                opt.step()
                opt.zero_grad()
