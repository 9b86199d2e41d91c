import torch
from torch.autograd import Function


class Pool(Function):
    def __init__(self, size):
        self.size = size

    def forward(self, features, rois):
        output, argmax = pool_forward(features, rois, self.size)
        self.argmax = argmax  # BUG FL005
        self.feature_size = features.size()
        return output
