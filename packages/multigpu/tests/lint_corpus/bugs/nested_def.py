import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

        def apply_scale(x):
            return x * self.scale

        self.fn = apply_scale  # BUG FL008

    def forward(self, x):
        return self.fn(x)
