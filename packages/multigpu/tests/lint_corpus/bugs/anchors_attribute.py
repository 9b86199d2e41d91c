import numpy as np
import torch
from torch import nn

from .generate_anchors import generate_anchors


class ProposalLayer(nn.Module):
    def __init__(self, stride, scales, ratios):
        super(ProposalLayer, self).__init__()
        self._stride = stride
        self._anchors = torch.from_numpy(generate_anchors(scales=np.array(scales), ratios=np.array(ratios))).float()  # BUG FL007
        self._num_anchors = self._anchors.size(0)

    def forward(self, scores, deltas):
        anchors = self._anchors.view(1, self._num_anchors, 4)
        return anchors + deltas
