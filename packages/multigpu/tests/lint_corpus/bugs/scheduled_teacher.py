import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim, steps):
        super().__init__()
        self.cell, self.out, self.steps = nn.GRUCell(dim, dim), nn.Linear(dim, dim), steps

    def forward(self, h):
        tokens = []
        for _ in range(self.steps):
            h = self.cell(self.out(h), h)
            tokens.append(h.argmax(-1)[0].item())  # BUG FL009
        return h, tokens
