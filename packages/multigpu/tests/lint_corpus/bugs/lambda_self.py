from torch import nn


class Block(nn.Module):
    def __init__(self, channels, skip):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.project = nn.Conv2d(channels, channels, 1)
        self.shortcut = (lambda x: x) if skip else (lambda x: self.project(x))  # BUG FL008

    def forward(self, x):
        return self.conv(x) + self.shortcut(x)
