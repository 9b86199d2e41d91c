import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Linear(dim, dim)
        self.dim = dim

    def forward(self, n: int):
        z = torch.randn(n, self.dim, device=self.net.weight.device, dtype=self.net.weight.dtype)
        with z.device:
            scale = torch.linspace(0, 1, self.dim)
        return self.net(z * scale)
