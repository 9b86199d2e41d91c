import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, rows):
        return self.last(checkpoint(self.first, rows))  # BUG FL024


def train(rows):
    dist.init_process_group("nccl")
    place = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(place)
    net = DDP(Scores(16).cuda(place), device_ids=[place])
    optimizer = torch.optim.AdamW(net.parameters())
    loader = DataLoader(rows, batch_size=8, shuffle=True)  # BUG FL021
    for epoch in range(3):
        for count, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(net(x.cuda(place)), y.cuda(place))
            loss.backward()  # BUG FL022 FL023
            if (count + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(epoch, loss.item())  # BUG FL025
