import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--noise", type=float, default=0.1)
args = parser.parse_args()


class NoisyLinear(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.linear = nn.Linear(16, 4)

    def forward(self, x):
        return self.linear(x + self.args.noise * torch.randn_like(x))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.net = nn.DataParallel(NoisyLinear(args)).to(args.device)

    def step(self, x):
        return self.net(x.to(self.args.device)).sum()
