import torch, torch.nn as nn
class Seq(nn.Module):
    def __init__(self, rnn): 
        super().__init__()
        self.rnn = rnn
    def forward(self, xs):
        h = torch.zeros(xs.size(0), 128)  # BUG FL002
        outs = []
        for t in range(xs.size(1)):
            h = self.rnn(xs[:, t], h)
            outs.append(h)
        return torch.stack(outs, 1)
