import functools

from torch import nn


def run_layer(layer, x, scale=1.0):
    return layer(x) * scale


class Head(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.fc = nn.Linear(3, 1)
        self.scale = scale
        self.run = functools.partial(run_layer, self.fc)  # BUG FL008
        self.again = functools.partial(run_layer, layer=self.fc)  # BUG FL008
        self.call = functools.partial(self.fc)  # BUG FL008
        self.whole = functools.partial(run_layer, self)  # BUG FL008
        self.scaled = functools.partial(run_layer, scale=self.scale)

    def forward(self, x):
        return self.run(x)
