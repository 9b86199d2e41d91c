import torch
from torch import nn


class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        return self.criterion(self.net(images), labels)


def train(net, loader, optimizer):
    model = nn.DataParallel(WithLoss(net)).cuda()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = model(images, labels)
        loss.backward()  # BUG FL010
        optimizer.step()
