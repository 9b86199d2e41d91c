import torch
from torch.nn.parallel import DistributedDataParallel


def train(net, batches, rank):
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(net, device_ids=[rank])
    for batch in batches:
        loss = model(batch)
        loss.backward()
