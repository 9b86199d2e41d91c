import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(loader, val_loader):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(torch.nn.Linear(8, 2).cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
    for epoch in range(10):
        train_epoch(model, loader, opt)
        val = torch.zeros(1, device="cuda")
        if dist.get_rank() == 0:
            val += validate(model.module, val_loader)
        dist.broadcast(val, 0)
        sched.step(val.item())
