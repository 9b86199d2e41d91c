import torch
from torch import nn


class PositionEncoder(nn.Module):
    def __init__(self, dim, max_len, device):
        super().__init__()
        self.device = device
        self.proj = nn.Linear(dim, dim)
        self.max_len = max_len

    def forward(self, x):
        pos = torch.arange(x.size(1), device=self.device).float()
        return self.proj(x) + pos.view(1, -1, 1)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = PositionEncoder(64, 512, device)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
model = model.to(device)
out = model(torch.randn(8, 16, 64).to(device))
