import torch
from torch import nn


class TwoParts(nn.Module):
    """One model over two GPUs, by hand."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 10).to("cuda:0")
        self.second = nn.Linear(10, 5).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x.to("cuda:0")).relu().to("cuda:1"))
