import torch
from torch import nn


class Net(nn.Module):
    """Only ever run under DataParallel, which makes the replica's device current in its thread."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        noise = torch.randn(x.size()).cuda()
        return self.fc(x + noise)


model = nn.DataParallel(Net().cuda())
print(model(torch.randn(8, 4).cuda()).shape)
