import torch
import torch.nn.functional as F


def build_loss(cls_score, label, bg, fg):
    ce_weights = torch.ones(cls_score.size()[1])  # BUG FL002
    ce_weights[0] = float(fg) / (bg + 1e-4)
    return F.cross_entropy(cls_score, label, weight=ce_weights)
