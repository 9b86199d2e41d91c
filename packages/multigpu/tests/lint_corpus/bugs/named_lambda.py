import torch
import torch.nn as nn


class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.randn(d))
        fn = lambda x: x * self.w.sigmoid()  # BUG FL008
        self.fns = [fn, torch.tanh]

    def forward(self, x):
        for f in self.fns:
            x = f(x)
        return x
