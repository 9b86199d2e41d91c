import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, rank, accum):
    model = DDP(net.to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        model.require_backward_grad_sync = (i + 1) % accum == 0
        loss = torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank)) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
