import torch
class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = {}
    def forward(self, x, ids):
        f = self.enc(x)
        for i, k in enumerate(ids):
            self.bank[k] = f[i].detach()  # BUG FL005
        return f
