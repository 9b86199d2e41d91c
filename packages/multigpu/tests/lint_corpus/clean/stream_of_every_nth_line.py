import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, path, rank, world):
        self.path, self.rank, self.world = path, rank, world

    def __iter__(self):
        with open(self.path) as f:
            for number, line in enumerate(f):
                if number % self.world == self.rank:
                    yield torch.tensor([float(v) for v in line.split()])


dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
loader = DataLoader(Lines("a.txt", dist.get_rank(), dist.get_world_size()), batch_size=8)
model = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[local_rank])
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x.cuda()).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
