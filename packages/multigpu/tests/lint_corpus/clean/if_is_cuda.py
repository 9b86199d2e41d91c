import torch
from torch import nn


class Crop(nn.Module):
    def forward(self, features, rois):
        index = torch.arange(rois.size(0))
        if features.is_cuda:
            index = index.cuda(features.get_device())
        weights = torch.ones(rois.size(0)).type(features.type())
        return features.index_select(0, index) * weights[:, None, None, None]
