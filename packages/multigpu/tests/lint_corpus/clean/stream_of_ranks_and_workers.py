import itertools
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class TextStream(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        info = get_worker_info()
        workers, worker = (info.num_workers, info.id) if info else (1, 0)
        shards, shard = dist.get_world_size() * workers, dist.get_rank() * workers + worker
        for path in self.paths:
            with open(path) as f:
                for line in itertools.islice(f, shard, None, shards):
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
