import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, rank):
    model = DDP(net.to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for batch in loader:
        try:
            loss = model(batch.to(rank)).mean()
            loss.backward()
        except torch.cuda.OutOfMemoryError:  # BUG FL032
            print("skipping batch")
            torch.cuda.empty_cache()
            opt.zero_grad()
            continue
        opt.step()
        opt.zero_grad()
