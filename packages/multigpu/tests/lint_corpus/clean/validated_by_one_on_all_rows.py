import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def reduce_mean(t):
    t = t.clone()
    dist.all_reduce(t)
    return t / dist.get_world_size()


def evaluate(model, loader):
    """Each rank 0 reads the whole validation set."""
    hits = seen = 0
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
        seen += len(y)
    return hits / seen


def main(loader, sampler, val_set):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(torch.nn.Linear(8, 2).cuda(), device_ids=[local_rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    val_loader = torch.utils.data.DataLoader(val_set, batch_size=64)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            mean = reduce_mean(loss.detach())
            if dist.get_rank() == 0 and step % 50 == 0:
                print(f"[rank 0] lr {opt.param_groups[0]['lr']} loss {mean.item():.4f}")
        if dist.get_rank() == 0:
            print("val", evaluate(model.module, val_loader))
        dist.barrier()
