import torch


def train(netD, netG, loader, criterion, device, nz):
    for real, _ in loader:
        real = real.to(device)
        ones = torch.ones(real.size(0), 1)  # BUG FL002
        noise = torch.randn(real.size(0), nz)  # BUG FL002
        loss = criterion(netD(real), ones) + criterion(netD(netG(noise)), ones)
        loss.backward()
