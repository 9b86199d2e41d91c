import torch
from torch import nn


class RoIPooling(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.size, self.scale = size, scale

    def forward(self, features, rois):
        shape = (rois.shape[0], features.shape[1], self.size, self.size)
        output = torch.zeros(shape).cuda()  # BUG FL001
        argmax = torch.zeros(shape, dtype=torch.int32).cuda()  # BUG FL001
        pool(features, rois, output, argmax, self.scale)
        return output
