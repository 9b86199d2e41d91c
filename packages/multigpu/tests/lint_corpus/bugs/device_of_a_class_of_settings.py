import torch
import torch.nn as nn


class CFG:
    device = "cuda:0"
    dim = 32


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(CFG.dim, CFG.dim)

    def forward(self, x):
        noise = torch.randn(x.shape, device=CFG.device)  # BUG FL004
        return self.l(x + noise)


model = nn.DataParallel(Net()).to(CFG.device)
