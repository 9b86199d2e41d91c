import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class RNN(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.dim = dim
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        h0 = torch.zeros(1, x.size(0), self.dim).to(device)
        c0 = torch.zeros(1, x.size(0), self.dim, device=device)
        return self.fc(self.lstm(x, (h0, c0))[0][:, -1])


model = RNN(28, 10).to(device)
