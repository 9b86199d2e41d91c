import torch
import torch.nn as nn


class CFG:
    device = "cuda"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        noise = torch.randn(x.shape, device=x.device)
        return self.l(x + noise)


model = nn.DataParallel(Net()).to(CFG.device)
