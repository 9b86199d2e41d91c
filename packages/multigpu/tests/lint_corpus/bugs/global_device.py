import torch
from torch import nn

device = torch.device("cuda:0")  # BUG FL004


class Sampler(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.linear = nn.Linear(n, n)

    def forward(self, mean, std):
        noise = torch.randn(mean.shape, device=device)  # BUG FL004
        return self.linear(mean + std * noise)
