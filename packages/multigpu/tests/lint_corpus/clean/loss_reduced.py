import torch
from torch import nn


class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.net(images), labels)


def train(net, loader, optimizer, n_gpu):
    model = WithLoss(net).cuda()
    if n_gpu > 1:
        model = nn.DataParallel(model)
    for images, labels in loader:
        loss = model(images, labels)
        if n_gpu > 1:
            loss = loss.mean()
        loss.backward()
        outputs = model(images, labels)
        torch.mean(outputs).backward()
        model(images, labels).backward(torch.ones(n_gpu))
