import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    @property
    def device(self):
        return self.fc.weight.device

    def forward(self, n: int):
        x = torch.zeros(n, self.fc.in_features, device=self.device)
        positions = torch.as_tensor([float(i) for i in range(n)], device=x.device)
        return self.fc(x) + positions[:, None]
