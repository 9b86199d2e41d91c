import torch
from torch import nn


class Mixup(nn.Module):
    def forward(self, x, alpha: float = 0.2):
        lam = torch.rand(x.size(0), 1, 1, 1, device="cuda:0")  # BUG FL004
        return lam * x + (1 - lam) * x.flip(0)
