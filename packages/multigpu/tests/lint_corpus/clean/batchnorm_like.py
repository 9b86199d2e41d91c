import torch
from torch import nn


class RunningNorm(nn.Module):
    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.register_buffer("running", torch.zeros(dim))
        self.register_buffer("steps", torch.tensor(0))
        self.momentum = momentum

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.running.mul_(1 - self.momentum).add_(x.mean(0), alpha=self.momentum)
                self.steps += 1
        return x - self.running
