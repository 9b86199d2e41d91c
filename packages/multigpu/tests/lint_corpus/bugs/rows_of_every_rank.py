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
        files = self.files[worker.id :: worker.num_workers]  # BUG FL034
        for name in files:
            with open(name) as lines:
                yield from map(len, lines)


def train(net, files, data):
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    model = DDP(net.cuda(gpu), device_ids=[gpu])
    for lengths in DataLoader(Lines(files), batch_size=8, num_workers=2):
        model(lengths.cuda(gpu)).mean().backward()
    sampler = DistributedSampler(data, num_replicas=torch.cuda.device_count(), rank=gpu)  # BUG FL035
    local_rank = gpu
    other = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=local_rank)  # BUG FL035
    for epoch in range(2):
        sampler.set_epoch(epoch)
        other.set_epoch(epoch)
        for x in DataLoader(data, sampler=sampler):
            model(x.cuda(gpu)).mean().backward()
