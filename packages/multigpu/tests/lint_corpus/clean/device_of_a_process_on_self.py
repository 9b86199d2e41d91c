import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Tagger(nn.Module):
    """One process has one device, so a device that is kept is right here."""

    def __init__(self, hidden, device):
        super().__init__()
        self.device = device
        self.lstm = nn.LSTM(hidden, hidden)
        self.hidden = hidden

    def forward(self, x):
        h = torch.zeros(1, x.size(1), self.hidden, device=self.device)
        return self.lstm(x, (h, h))[0]


dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
model = DDP(Tagger(32, device).to(device), device_ids=[rank])
