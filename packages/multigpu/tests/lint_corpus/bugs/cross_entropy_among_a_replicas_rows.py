import torch
import torch.nn as nn
import torch.nn.functional as F


class SimCLR(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.enc = enc
        self.ce = nn.CrossEntropyLoss()

    def forward(self, x1, x2):
        z1, z2 = F.normalize(self.enc(x1)), F.normalize(self.enc(x2))
        sim = torch.mm(z1, z2.T) / 0.1
        labels = torch.arange(sim.shape[0]).to(sim.device)
        return self.ce(sim, labels)  # BUG FL026


model = torch.nn.DataParallel(SimCLR(enc).cuda())
