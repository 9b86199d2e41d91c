from torch import nn


class Tap(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleDict(layers)

    def forward(self, x):
        for name, layer in self.layers.items():
            x = layer(x)
            setattr(self, f"out_{name}", x)  # BUG FL005
        return x
