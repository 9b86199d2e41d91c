import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def setup():
    dist.init_process_group(backend="nccl")  # BUG FL018


def main(batches):
    setup()
    model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda())  # one of them is not enough
    for x in batches:
        model(x.cuda()).sum().backward()  # BUG FL001
    dist.destroy_process_group()
