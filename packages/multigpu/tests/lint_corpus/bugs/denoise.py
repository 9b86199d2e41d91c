import torch
from torch import nn
from torch.autograd import Variable


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(784, 32)
        self.dec = nn.Linear(32, 784)

    def forward(self, x):
        if self.training:
            x = x + 0.1 * Variable(torch.randn(x.size()))  # BUG FL002
        return self.dec(self.enc(x).relu())
