import torch
from torch import nn


class Contrastive(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.enc = nn.Linear(dim, 32)

    def forward(self, a, b):
        za = nn.functional.normalize(self.enc(a), dim=-1)
        zb = nn.functional.normalize(self.enc(b), dim=-1)
        logits = za @ zb.t() / 0.07
        target = torch.arange(logits.size(0), device=logits.device)
        return nn.functional.cross_entropy(logits, target)  # BUG FL026


model = nn.DataParallel(Contrastive(64)).cuda()
loss = model(torch.randn(64, 64).cuda(), torch.randn(64, 64).cuda()).mean()
loss.backward()
