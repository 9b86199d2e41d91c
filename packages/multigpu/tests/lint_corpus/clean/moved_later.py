import torch
import torch.nn.functional as F


def contrastive(z, labels):
    mask = torch.eye(z.size(0), dtype=torch.bool)
    mask = mask.to(z.device)
    targets = torch.arange(z.size(0)).long()
    targets = targets.type_as(labels)
    return F.cross_entropy((z @ z.t()).masked_fill(mask, -1e9), targets)
