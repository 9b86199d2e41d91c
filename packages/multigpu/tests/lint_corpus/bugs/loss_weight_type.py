import torch
from torch import nn
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.cuda.FloatTensor([1, 5])  # BUG FL003
    def forward(self, p, t):
        return nn.functional.cross_entropy(p, t, weight=self.weight)
