from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        self.act = lambda x: x.clamp(min=0)
        self.order = sorted(range(depth), key=lambda i: -i)

    def forward(self, x):
        for i in self.order:
            x = checkpoint(lambda y: self.act(self.blocks[i](y)), x, use_reentrant=False)
        return x
