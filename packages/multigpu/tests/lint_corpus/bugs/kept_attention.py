from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads)
        self.attention_weights = None

    def forward(self, x):
        out, weights = self.attn(x, x, x)
        self.attention_weights = weights.detach()  # BUG FL005
        return out
