import torch
from torch import nn


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
        self.sizes = []

    def forward(self, x):
        self.steps += 1
        self.sizes = []
        self.depth = 0
        return self.descend(x)

    def descend(self, x):
        self.depth += 1
        self.sizes.append(x.shape[-1])
        return x if self.depth > 3 else self.descend(x[..., ::2])


class Queue:
    def __init__(self, items):
        self.items, self.at = items, 0

    def forward(self):
        self.at += 1
        return self.items[self.at]
