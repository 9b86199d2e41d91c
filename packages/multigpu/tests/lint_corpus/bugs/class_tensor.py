import torch
from torch import nn


class Coder(nn.Module):
    weights = torch.tensor([10.0, 10.0, 5.0, 5.0])  # BUG FL007

    def forward(self, deltas):
        return deltas / self.weights
