import torch as th
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocabulary, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)

    def forward(self, tokens, hidden=None):
        if hidden is None:
            hidden = (th.zeros(1, tokens.size(0), self.dim), th.zeros(1, tokens.size(0), self.dim))  # BUG FL002
        out, _ = self.lstm(self.embed(tokens), hidden)
        return out
