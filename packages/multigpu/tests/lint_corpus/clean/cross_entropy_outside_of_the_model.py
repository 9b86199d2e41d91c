import torch
import torch.nn as nn
import torch.nn.functional as F


class SimCLR(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.enc = enc
        self.pos = nn.Embedding(100, 8)

    def forward(self, x1, x2):
        p = self.pos(torch.arange(x1.size(1), device=x1.device))
        w = torch.softmax(x1.sum(-1), 1)
        return F.normalize(self.enc(x1 + p)), (w * x2.sum(-1)).sum(1) / w.sum(1)


model = nn.DataParallel(SimCLR(enc).cuda())
z1, z2 = model(a, b)
sim = z1 @ z2.T
loss = F.cross_entropy(sim, torch.arange(len(sim), device=sim.device))
