import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(model, head, batches, path, rank):
    model = FSDP(model, device_id=rank)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).backward()
        optimizer.step()
    weights = model.state_dict()
    if rank == 0:
        torch.save({"model": weights, "head": head.state_dict()}, path)


def save(model, folder, norm):
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    norm = norm.full_tensor()
    if dist.get_rank() == 0:
        print(norm)
        dcp.save({"norm": norm}, checkpoint_id=f"{folder}/norm", no_dist=True)
