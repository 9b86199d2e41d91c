import torch
import torch.nn.functional as F
from torch import nn


class LargestSingularValue(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("u", F.normalize(torch.randn(rows), dim=0))

    def forward(self, weight):
        v = F.normalize(weight.t() @ self.u, dim=0)
        self.u = F.normalize(weight.detach() @ v.detach(), dim=0, out=self.u)
        return self.u @ weight @ v
