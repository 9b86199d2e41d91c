from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint_sequential


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(8)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = checkpoint_sequential(self.layers, 4, x, use_reentrant=True)  # BUG FL024
        return self.head(x)


def build(rank):
    return DistributedDataParallel(Tower(64).to(rank), device_ids=[rank])
