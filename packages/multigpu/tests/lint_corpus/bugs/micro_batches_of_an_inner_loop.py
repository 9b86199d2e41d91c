import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, rank, accumulate):
    model = DDP(net.to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        optimizer.zero_grad()
        for micro in range(accumulate):
            x, y = next(batches)
            loss = F.cross_entropy(model(x.to(rank)), y.to(rank))
            loss.backward()  # BUG FL022 FL023
        optimizer.step()
