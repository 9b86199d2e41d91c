"""A device that is given, where it is right beside DataParallel: buffers, moves in forward, a device without a number."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, batch_size, device):
        super().__init__()
        self.batch_size = batch_size
        self.device = device
        self.query = nn.Linear(width, width)
        self.register_buffer("scale", torch.sqrt(torch.FloatTensor([width])).to(device))
        self.shift = torch.ones(width).to(device)
        self.loss = nn.CrossEntropyLoss(weight=torch.ones(width).to(device))

    def forward(self, x):
        part = self.batch_size // torch.cuda.device_count()
        start = torch.zeros(3, device=self.device)
        return self.query(x).view(part, -1) / self.scale + self.shift.to(x.device).sum() + start.sum()


class Alone(nn.Module):
    def __init__(self, width, batch_size, device):
        super().__init__()
        self.batch_size = batch_size
        self.scale = torch.ones(width).to(device)

    def forward(self, x):
        return x.view(self.batch_size, -1) * self.scale


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(Attention(16, 8, device).to(device))
other = Alone(16, 8, device).to(device)
