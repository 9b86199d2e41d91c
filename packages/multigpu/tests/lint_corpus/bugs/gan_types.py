import torch
from torch.autograd import Variable

cuda = torch.cuda.is_available()
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor  # BUG FL003


def train(generator, discriminator, loader, criterion, optimizer):
    for images, _ in loader:
        real = Variable(images.type(Tensor))
        valid = Variable(Tensor(images.size(0), 1).fill_(1.0), requires_grad=False)
        loss = criterion(discriminator(real), valid)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
