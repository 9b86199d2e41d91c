import torch
from torch import nn
class Sum(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.branches = nn.ModuleList([a, b])
        self.weights = [0.3, 0.7]
    def forward(self, x):
        total = 0
        for w, branch in zip(self.weights, self.branches):
            total = total + w * branch(x)
        return total
