import torch
from torch import nn


class Time(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        frequencies = torch.exp(-torch.arange(self.dim // 2) / self.dim).to(t)
        angles = t[:, None] * frequencies[None]
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
