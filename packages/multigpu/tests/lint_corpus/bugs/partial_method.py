from functools import partial

from torch import nn


class Router(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))
        self.routes = [partial(self._expert, i) for i in range(experts)]  # BUG FL008

    def _expert(self, index, x):
        return self.experts[index](x)

    def forward(self, x):
        return sum(route(x) for route in self.routes)
