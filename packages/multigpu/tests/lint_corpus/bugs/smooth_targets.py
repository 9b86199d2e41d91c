import torch
def smooth_targets(y, n_cls, eps=0.1):
    dist = torch.full((y.size(0), n_cls), eps / (n_cls - 1))  # BUG FL002
    return dist.scatter_(1, y.unsqueeze(1), 1 - eps)
