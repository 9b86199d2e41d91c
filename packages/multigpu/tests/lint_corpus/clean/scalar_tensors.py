import math

import torch
from torch import nn


class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        y = self.fc(x)
        y = torch.where(y > 10, torch.tensor(10.0), y)
        return y * torch.tensor(math.pi)
