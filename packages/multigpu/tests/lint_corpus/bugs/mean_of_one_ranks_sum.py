import os

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main(dataset):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if rank == 0:
        wandb.init(project="x")
    model = DDP(torch.nn.Linear(8, 1).cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            opt.step()
            total += loss.item()  # BUG FL009
        if rank == 0:
            wandb.log({"train/loss": total / len(loader), "epoch": epoch})  # BUG FL025
