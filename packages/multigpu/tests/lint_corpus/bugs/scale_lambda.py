import torch
from torch import nn
class M(nn.Module):
    def __init__(self):
        super(M, self).__init__()
        self.register_buffer('k', torch.ones(3))
        self.scale = nn.Parameter(torch.ones(1))
        self.post = lambda t: t * self.scale  # BUG FL008
        self.pre = lambda t: t.float()
    def forward(self, x):
        self.last_input = x  # BUG FL005
        return self.post(self.pre(x)) * self.k
