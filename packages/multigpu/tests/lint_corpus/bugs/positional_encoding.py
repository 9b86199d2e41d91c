import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, dim, max_len=5000):
        super().__init__()
        pe = torch.zeros(max_len, dim)
        position = torch.arange(max_len).unsqueeze(1).float()
        step = torch.exp(torch.arange(0, dim, 2).float() * -(math.log(10000.0) / dim))
        pe[:, 0::2] = torch.sin(position * step)
        pe[:, 1::2] = torch.cos(position * step)
        self.pe = pe.unsqueeze(0)  # BUG FL007

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]
