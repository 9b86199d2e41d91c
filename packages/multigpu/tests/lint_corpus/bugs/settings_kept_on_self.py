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
        noise = torch.randn(x.shape, device=self.args.device)  # BUG FL004
        return self.linear(x + self.args.noise * noise)


net = nn.DataParallel(NoisyLinear(args)).to(args.device)
print(net(torch.zeros(8, 16)).shape)
