import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, batch_size, device):
        super().__init__()
        self.batch_size = batch_size
        self.device = device
        self.query = nn.Linear(width, width)
        self.scale = torch.sqrt(torch.FloatTensor([width])).to(device)  # BUG FL007
        self.masks = [torch.ones(width, device=device) for _ in range(3)]  # BUG FL007

    def forward(self, x):
        rows = self.query(x).view(self.batch_size, -1)  # BUG FL026
        start = torch.zeros(3, device=self.device)  # BUG FL004
        return rows / self.scale + start.sum() + sum(self.masks).sum()


first = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(Attention(16, 8, first).to(first))
