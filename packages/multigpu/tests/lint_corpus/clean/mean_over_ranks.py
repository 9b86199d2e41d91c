import os, torch
import torch.distributed as dist
def setup():
    rank = int(os.environ["RANK"]); local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    return rank
def mean_over_ranks(value):
    t = torch.tensor([value], device="cuda")
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()
