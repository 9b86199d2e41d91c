import os
import socket

import torch
import torch.distributed as dist
from torch.multiprocessing import spawn


def free_port():
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]


def join(rank, size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=size)


def join_alone():
    os.environ["MASTER_PORT"] = str(free_port())
    dist.init_process_group("gloo", rank=0, world_size=1)


if __name__ == "__main__":
    spawn(join, (2, free_port()), nprocs=2)
