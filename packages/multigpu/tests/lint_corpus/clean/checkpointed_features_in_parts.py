from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint_sequential


class Tower(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(8)])

    def forward(self, tokens):
        x = self.embed(tokens)
        return checkpoint_sequential(self.layers, 4, x, use_reentrant=True)


def build(rank):
    return DistributedDataParallel(Tower(1000, 64).to(rank), device_ids=[rank])
