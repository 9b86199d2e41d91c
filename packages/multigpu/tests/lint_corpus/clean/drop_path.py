import torch
import torch.nn as nn


class Stack(nn.Module):
    def __init__(self, block, depth, rate):
        super().__init__()
        rates = [r.item() for r in torch.linspace(0, rate, depth)]
        self.blocks = nn.Sequential(*(block(r) for r in rates))

    def forward(self, x):
        return self.blocks(x)
