import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def find_batch_size(model, rank, sizes):
    model = DDP(model, device_ids=[rank])
    for n in sizes:
        try:
            model(torch.randn(n, 8, device=rank)).sum().backward()
        except torch.cuda.OutOfMemoryError:
            break
        best = n
    return best
