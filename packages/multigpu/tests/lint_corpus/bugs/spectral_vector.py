import torch
import torch.nn as nn


class SpectralNorm(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.u = torch.randn(module.weight.size(0))  # BUG FL007

    def forward(self, x):
        w = self.module.weight.flatten(1)
        v = torch.mv(w.t(), self.u)
        sigma = v.norm()
        return self.module(x) / sigma
