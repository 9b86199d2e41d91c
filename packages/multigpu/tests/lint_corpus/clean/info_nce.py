import torch, torch.nn.functional as F
def info_nce(q, k, t=0.07):
    logits = q @ k.T / t
    labels = torch.arange(len(q)).to(q.device)
    return F.cross_entropy(logits, labels)
