from torch import nn


class Router(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(experts)
        self.rows = None

    def forward(self, x):
        self.rows = x.shape[0]  # BUG FL011
        return sum(expert(x) for expert in self.experts)

    def report(self):
        return f"{self.rows} rows through {len(self.experts)} experts"
