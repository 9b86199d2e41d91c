import torch
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, logits, labels):
        alpha = torch.tensor([self.alpha, 1 - self.alpha]).to("cuda")  # BUG FL001
        return (alpha[labels] * -logits.log_softmax(1)[:, 1]).mean()
