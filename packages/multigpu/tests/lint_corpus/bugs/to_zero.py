import torch
import torch.nn.functional as F


def dice_loss(logits, target, classes):
    one_hot = F.one_hot(target, classes).to(0)  # BUG FL004
    probs = logits.softmax(1)
    return 1 - (2 * (probs * one_hot).sum() / (probs.sum() + one_hot.sum()))
