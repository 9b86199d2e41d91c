from torch import nn


class Monitor(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.stats = {}

    def forward(self, x):
        y = self.layer(x)
        self.stats["mean"] = y.mean()  # BUG FL005
        self.stats["shape"] = y.shape
        return y
