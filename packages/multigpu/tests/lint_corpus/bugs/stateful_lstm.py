from torch import nn


class Policy(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lstm = nn.LSTM(dim, dim)
        self.hidden = None

    def forward(self, x):
        out, self.hidden = self.lstm(x, self.hidden)  # BUG FL005
        return out
