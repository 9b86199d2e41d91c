import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, rank):
    model = DDP(net.to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for number, batch in enumerate(loader):
        try:
            opt.zero_grad()
            model(batch.to(rank)).mean().backward()
            opt.step()
        except torch.cuda.OutOfMemoryError:
            print(f"rank {rank}: batch {number} of {tuple(batch.shape)} does not fit")
            raise
