import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def evaluate(model, loader, rank):
    if rank != 0:
        return None
    right = sum((model(x.to(rank)).argmax(1) == y.to(rank)).sum() for x, y in loader)
    dist.all_reduce(right)  # BUG FL017
    return right.item()


def save_each_epoch(net, loader, epochs, rank, path):
    model = FSDP(net)
    for epoch in range(epochs):
        for x, y in loader:
            torch.nn.functional.cross_entropy(model(x), y).backward()
        if not is_main_process():
            print(f"rank {rank} has finished epoch {epoch}")
            continue
        weights = model.state_dict()  # BUG FL017
        torch.save(weights, path)


def is_main_process():
    return dist.get_rank() == 0
