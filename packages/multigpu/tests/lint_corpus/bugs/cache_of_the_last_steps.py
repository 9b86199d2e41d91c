from torch import nn


class Language(nn.Module):
    def __init__(self, body, kept=100):
        super().__init__()
        self.body, self.kept = body, kept
        self.lengths = []

    def forward(self, x):
        self.lengths = self.lengths[-self.kept :]
        self.lengths += [x.shape[1]]  # BUG FL011
        return self.body(x)
