import torch
from torch import nn


class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.calls = 0
        self.sizes = []
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        self.steps += 1  # BUG FL011
        self.calls = self.calls + 1  # BUG FL011
        self.sizes.append(x.shape[0])  # BUG FL011
        return self.proj(x) * min(1.0, self.steps / 1000)
