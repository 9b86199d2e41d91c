import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[local_rank])
    for x, y in batches():
        loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
        loss.backward()


if __name__ == "__main__":
    main()
