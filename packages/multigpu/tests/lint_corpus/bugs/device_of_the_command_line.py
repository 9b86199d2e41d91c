import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda:0")
args = parser.parse_args()
DEVICE = torch.device(args.device)


class LSTMTagger(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.hidden = hidden
        self.emb = nn.Embedding(vocab, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def init_hidden(self, batch):
        return (torch.zeros(1, batch, self.hidden).to(DEVICE), torch.zeros(1, batch, self.hidden).to(DEVICE))  # BUG FL004

    def forward(self, tokens):
        h = self.init_hidden(tokens.size(0))
        y, _ = self.lstm(self.emb(tokens), h)
        return F.log_softmax(self.out(y), -1)


net = nn.DataParallel(LSTMTagger(1000, 64), device_ids=[0, 1]).to(DEVICE)
