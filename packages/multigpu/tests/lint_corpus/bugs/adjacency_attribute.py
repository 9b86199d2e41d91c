import torch.nn as nn
import torch as th

class GCN(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.adj = th.eye(n)  # BUG FL007
        self.w = nn.Linear(d, d)
    def forward(self, h):
        return self.w(self.adj @ h)
