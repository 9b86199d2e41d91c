import os

import torch
import torch.distributed as dist


def worker(rank, world_size, model):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    device = torch.device("cuda")  # noqa: FL001 it sees one GPU only
    return model.to(device)  # noqa: FL001
