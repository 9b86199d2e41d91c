"""The residual block of two Linears that stands before each class's score, serial and for all classes at once."""

from torch import Tensor, nn
from torch.nn import functional as F

from frcnn_lite.layers import GroupLinear


class ResidualLinearBlock(nn.Module):
    """Squeeze by `reduction`, expand, add the input: (..., in) -> (..., out).

    The post uses `utils.ResidualLinearBlock(in_channels, reduction, out_channels)` without showing it; this is the
    reading that its argument names allow, with a Linear on the shortcut where the channels change.
    """

    def __init__(self, in_channels: int, reduction: int, out_channels: int) -> None:
        super().__init__()
        hidden = _hidden(in_channels, reduction)
        self.fc1 = nn.Linear(in_channels, hidden)
        self.fc2 = nn.Linear(hidden, out_channels)
        self.shortcut = None if in_channels == out_channels else nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.fc2(F.relu(self.fc1(x))) + shortcut)


class GroupedResidualLinear(nn.Module):
    """`n_groups` blocks of `ResidualLinearBlock`, block k on row k: (B, n_groups, in) -> (B, n_groups, out)."""

    def __init__(self, n_groups: int, in_channels: int, reduction: int, out_channels: int) -> None:
        super().__init__()
        hidden, each = _hidden(in_channels, reduction), (1,) * n_groups
        self.fc1 = GroupLinear(n_groups, each, in_channels, hidden)
        self.fc2 = GroupLinear(n_groups, each, hidden, out_channels)
        self.shortcut = None
        if in_channels != out_channels:
            self.shortcut = GroupLinear(n_groups, each, in_channels, out_channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.fc2(F.relu(self.fc1(x))) + shortcut)


def _hidden(in_channels: int, reduction: int) -> int:
    if reduction < 1 or in_channels % reduction:
        raise ValueError(f"`reduction` must divide in_channels ({in_channels}), got {reduction}")
    return in_channels // reduction
