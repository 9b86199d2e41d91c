import torch
from torch.autograd import Variable


class Net(torch.nn.Module):
    def forward(self, x):
        mask = Variable(torch.ones(x.size(0))).cuda()  # BUG FL001
        print "mask", mask.size()  # BUG FL000
        return x * mask
