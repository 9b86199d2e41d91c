import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        worker = get_worker_info()
        number = dist.get_rank() * worker.num_workers + worker.id
        for name in self.files[number :: dist.get_world_size() * worker.num_workers]:
            with open(name) as lines:
                yield from map(len, lines)


class OfTheseFiles(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        worker = get_worker_info()
        yield from self.files[worker.id :: worker.num_workers]


def train(net, files, data):
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    model = DDP(net.cuda(gpu), device_ids=[gpu])
    own = files[dist.get_rank() :: dist.get_world_size()]
    for dataset in (Lines(files), OfTheseFiles(own)):
        for lengths in DataLoader(dataset, batch_size=8, num_workers=2):
            model(lengths.cuda(gpu)).mean().backward()
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x in DataLoader(data, sampler=sampler):
            model(x.cuda(gpu)).mean().backward()
