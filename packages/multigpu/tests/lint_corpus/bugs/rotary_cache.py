import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv)
        self.seq_len_cached = 0
        self.cos_cached = None

    def forward(self, x):
        n = x.shape[1]
        if n > self.seq_len_cached:
            self.seq_len_cached = n
            t = torch.arange(n, device=x.device).type_as(self.inv_freq)
            emb = torch.outer(t, self.inv_freq)
            self.cos_cached = emb.cos()[None]  # BUG FL005
        return x * self.cos_cached[:, :n]
