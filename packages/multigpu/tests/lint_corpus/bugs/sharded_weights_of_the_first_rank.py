import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(model, batches, path, rank):
    model = FSDP(model, device_id=rank)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), path)  # BUG FL017


def save(model, folder):
    if dist.get_rank() == 0:
        dcp.save({"model": model.state_dict()}, checkpoint_id=folder)  # BUG FL017


def norm(model):
    total = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if dist.get_rank() == 0:
        print(total.full_tensor())  # BUG FL017
