"""The twin of the network in notebooks/checkpoints/paddle/make.py: the same layers under other names."""

from torch import nn

RENAME = ((r"^(stem|conv|act)\b", r"backbone.\1"), (r"^classes$", "fc"))  # this twin's names to make.py's


class TwinOfPaddle(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.conv = nn.Conv2d(4, 6, 3, stride=2)
        self.act = nn.PReLU(6)
        self.hidden = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)
        self.classes = nn.Linear(6, 10)

    def forward(self, x):
        x = self.act(self.conv(self.stem(x))).mean((2, 3))
        return self.classes(self.norm(self.hidden(x)))
