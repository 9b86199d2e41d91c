import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    model = torch.nn.Linear(8, 8).cuda()  # BUG FL001
    model = DistributedDataParallel(model, device_ids=[rank])
    for x in batches():
        model(x.to(rank)).sum().backward()


if __name__ == "__main__":
    main()
