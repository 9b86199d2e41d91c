import torch
from torch import nn


class LSTM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.lstm = nn.LSTM(dim, dim)

    def forward(self, x, state=None):
        if state is None:
            state = tuple(s.to(x.device) for s in (torch.zeros(1, x.size(1), self.dim), torch.zeros(1, x.size(1), self.dim)))
        return self.lstm(x, state)
