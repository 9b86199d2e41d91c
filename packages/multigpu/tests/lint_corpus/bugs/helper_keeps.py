import torch
from torch import nn


class TwoStage(nn.Module):
    def __init__(self, rpn, head):
        super().__init__()
        self.rpn, self.head = rpn, head

    def _propose(self, features):
        proposals = self.rpn(features)
        self.proposals = proposals  # BUG FL005
        return proposals

    def forward(self, x):
        return self.head(x, self._propose(x))
