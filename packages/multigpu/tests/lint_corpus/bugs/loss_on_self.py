import torch.nn as nn
import torch.nn.functional as F


class RPN(nn.Module):
    def __init__(self):
        super(RPN, self).__init__()
        self.conv = nn.Conv2d(512, 512, 3, padding=1)
        self.score = nn.Conv2d(512, 18, 1)
        self.cross_entropy = None

    def forward(self, x, labels=None):
        score = self.score(F.relu(self.conv(x)))
        if self.training:
            self.cross_entropy = F.cross_entropy(score.view(-1, 2), labels)  # BUG FL005
        return score
