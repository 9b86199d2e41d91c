from torch import nn


class FPNBody(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.outputs = []

    def forward(self, x):
        self.outputs.clear()
        for stage in self.stages:
            x = stage(x)
            self.outputs.append(x)  # BUG FL005
        return x
