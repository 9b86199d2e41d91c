from torch import nn


class Heads(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.layers = nn.ModuleDict({task: nn.Linear(8, 2) for task in tasks})
        self.dispatch = {"boxes": self._boxes, "scores": self._scores}  # BUG FL008

    def _boxes(self, x):
        return self.layers["boxes"](x)

    def _scores(self, x):
        return self.layers["scores"](x).softmax(-1)

    def forward(self, x, task):
        return self.dispatch[task](x)
