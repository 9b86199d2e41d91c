import torch
from torch import nn


def train(netG, netD, loader, device, nz):
    criterion = nn.BCELoss()
    fixed = torch.randn(64, nz, 1, 1, device=device)
    for real, _ in loader:
        real = real.to(device)
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=device)
        noise = torch.randn(real.size(0), nz, 1, 1).to(device)
        loss = criterion(netD(real).view(-1), label) + criterion(netD(netG(noise)).view(-1), 1 - label)
        loss.backward()
    return netG(fixed).detach().cpu()
