import torch
from torch import nn
class Vit(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.drop_rates = [x.item() for x in torch.linspace(0, 0.1, 12)]
        self.norm = nn.LayerNorm(dim)
    def forward(self, x):
        cls = self.cls.expand(x.shape[0], -1, -1)
        return self.norm(torch.cat((cls, x), 1))
