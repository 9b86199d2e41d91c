import torch
from torch import nn


class LockedDropout(nn.Module):
    def forward(self, x, p=0.5):
        m = torch.empty(1, x.size(1), x.size(2)).bernoulli_(1 - p)  # BUG FL002
        return m.expand_as(x) * x / (1 - p)
