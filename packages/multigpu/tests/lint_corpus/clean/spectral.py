import torch
from torch import nn


class Normed(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim))

    def forward(self, x):
        with torch.no_grad():
            self.weight.data.div_(self.weight.norm())
        return x @ self.weight
