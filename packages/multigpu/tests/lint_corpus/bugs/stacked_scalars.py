import torch
from torch import nn


class Scales(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.scales = scales

    def forward(self, x):
        factors = torch.stack([torch.tensor(s) for s in self.scales])  # BUG FL002
        return x * factors
