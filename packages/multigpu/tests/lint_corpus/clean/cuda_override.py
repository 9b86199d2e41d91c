import torch.nn as nn


class Wrapper(nn.Module):
    def __init__(self, net, extra):
        super().__init__()
        self.net, self.extra = net, extra

    def cuda(self, device=None):
        self.extra = self.extra.cuda(device)
        return super().cuda(device)

    def forward(self, x):
        return self.net(x) + self.extra
