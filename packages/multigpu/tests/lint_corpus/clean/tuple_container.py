import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self, convs):
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.sizes = []

    def forward(self, features):
        self.sizes = [f.shape[-2:] for f in features]
        outs = []
        for conv, f in zip(self.convs, features):
            outs.append(conv(f))
        self.num_levels = len(outs)
        return outs, torch.tensor(self.sizes[0]).tolist()
