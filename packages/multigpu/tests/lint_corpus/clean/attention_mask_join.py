import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(dim, 2)

    def forward(self, x, memory, mask=None):
        if mask is None:
            mask = torch.full((x.size(0), x.size(0)), float("-inf"), device=x.device).triu(1)
        return self.layer(x, memory, tgt_mask=mask)
