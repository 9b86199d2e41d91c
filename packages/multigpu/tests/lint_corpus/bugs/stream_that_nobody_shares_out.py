import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class TextStream(IterableDataset):  # BUG FL034
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            with open(path) as f:
                for line in f:
                    yield torch.tensor([float(v) for v in line.split()])


def main(paths):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for x in DataLoader(TextStream(paths), batch_size=16, num_workers=2):
        opt.zero_grad()
        model(x.cuda()).mean().backward()
        opt.step()
