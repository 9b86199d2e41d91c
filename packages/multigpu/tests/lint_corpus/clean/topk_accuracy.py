import torch
@torch.no_grad()
def accuracy(output, target, topk=(1,)):
    res = []
    _, pred = output.topk(max(topk), 1)
    correct = pred.t().eq(target.view(1, -1))
    for k in topk:
        res.append(correct[:k].reshape(-1).float().sum().item())
    return res
