import torch
from torch import nn

from models import build_net


class Trainer:
    def __init__(self, args):
        self.model = build_net(args)
        if torch.cuda.device_count() > 1:
            self.model = nn.DataParallel(self.model)

    def save(self, epoch):
        torch.save({"epoch": epoch, "weights": self.model.state_dict()}, "last.pt")  # BUG FL013
