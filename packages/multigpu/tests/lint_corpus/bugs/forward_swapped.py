from torch import nn


class Net(nn.Module):
    def __init__(self, fast):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        if fast:
            self.forward = self.fast_forward  # BUG FL008

    def fast_forward(self, x):
        return self.fc(x)

    def forward(self, x):
        return self.fc(x).relu()
