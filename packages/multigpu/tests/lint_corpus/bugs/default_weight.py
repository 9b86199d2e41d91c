import torch
import torch.nn.functional as F


def weighted_ce(logits, labels, weight=torch.tensor([1.0, 2.0, 2.0])):  # BUG FL007
    return F.cross_entropy(logits, labels, weight=weight)
