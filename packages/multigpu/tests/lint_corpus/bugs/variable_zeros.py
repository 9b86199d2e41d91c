import torch
import torch.nn as nn
from torch.autograd import Variable


class GRUEncoder(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.hidden_size, self.layers = hidden, layers
        self.gru = nn.GRU(hidden, hidden, layers)

    def forward(self, frames):
        h0 = Variable(torch.zeros(self.layers, frames.size(1), self.hidden_size))
        if torch.cuda.is_available():
            h0 = h0.cuda()  # BUG FL001
        return self.gru(frames, h0)[0]
