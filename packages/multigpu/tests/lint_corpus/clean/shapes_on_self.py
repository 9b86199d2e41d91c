from torch import nn


class Resizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.last_shape = None
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x, mode="bilinear"):
        self.last_shape = tuple(x.shape)
        self.height, self.width = x.shape[-2:]
        self.mode = mode
        return self.conv(x)
