"""Many small Linear layers as one batched matrix product with an index.

`FastGroupLinear`, in fast_group_linear.py, computes the same faster; the state dicts of the two are the same.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def class_to_group(nclasses_per_group: Sequence[int]) -> Tensor:
    """Which group each class reads, (n_classes,) int64: (3, 0, 5) -> [0, 0, 0, 2, 2, 2, 2, 2]."""
    sizes = torch.tensor(list(nclasses_per_group), dtype=torch.int64)
    return torch.repeat_interleave(torch.arange(len(sizes)), sizes)


class GroupLinear(nn.Module):
    """One Linear per class, each reading its group's features: (B, G, Cg) -> (B, n_classes, Cc).

    Class c computes `x[:, group of c] @ weight[c].T + bias[c]`.
    `weight` is (n_classes, Cc, Cg) and `bias` (n_classes, Cc): those of a list of `nn.Linear`, stacked as they are.

    Args:
        n_groups: G, the groups of features.
        nclasses_per_group: how many classes read each group, 0 or more. `(1,) * G` is a Linear a group.
        group_channels: Cg, the features of a group.
        class_channels: Cc, the numbers that a class gives.
        bias: whether a bias is learned.

    Raises:
        ValueError: sizes do not fit each other, or an input has a different shape.

    Source: `Parallel_GroupLinear` and `group_divided_linear` of a post of about 2019, completed; its bound
    1 / sqrt(n_classes) is 1 / sqrt(Cg) here, as in `nn.Linear`, because Cg numbers are summed.
    """

    class_group: Tensor

    def __init__(
        self,
        n_groups: int,
        nclasses_per_group: Sequence[int],
        group_channels: int,
        class_channels: int,
        bias: bool = True,
    ) -> None:
        super().__init__()
        sizes = tuple(nclasses_per_group)
        if len(sizes) != n_groups or min(sizes, default=-1) < 0:
            wanted = f"{n_groups} numbers of classes, 0 or more each"
            raise ValueError(f"`nclasses_per_group` must be {wanted}, got {len(sizes)}: {sizes}")
        if min(group_channels, class_channels) < 1:
            got = f"{group_channels} and {class_channels}"
            raise ValueError(f"`group_channels` and `class_channels` must be 1 or more, got {got}")
        self.n_groups, self.nclasses_per_group, self.n_classes = n_groups, sizes, sum(sizes)
        self.group_channels, self.class_channels = group_channels, class_channels
        self.weight = nn.Parameter(torch.empty(self.n_classes, class_channels, group_channels))
        self.bias = nn.Parameter(torch.empty(self.n_classes, class_channels)) if bias else None
        self.register_buffer("class_group", class_to_group(sizes), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases as `nn.Linear(group_channels, class_channels)` draws them."""
        bound = 1 / math.sqrt(self.group_channels)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """(B, n_groups, group_channels) -> (B, n_classes, class_channels)."""
        if x.ndim != 3 or x.shape[1:] != (self.n_groups, self.group_channels):
            raise ValueError(f"`x` must be (B, {self.n_groups}, {self.group_channels}), got {tuple(x.shape)}")
        out = torch.einsum("bni,noi->bno", x[:, self.class_group], self.weight)
        return out if self.bias is None else out + self.bias

    @classmethod
    def from_linears(cls, linears: Sequence[nn.Linear], nclasses_per_group: Sequence[int]) -> "GroupLinear":
        """The layer that computes what a loop over `linears` computes; their weights are copied.

        Args:
            linears: one for each class, group after group.
            nclasses_per_group: how many of them read each group.

        Raises:
            ValueError: the sizes do not add up to the number of Linears, or the Linears differ in shape.
        """
        sizes = tuple(nclasses_per_group)
        if sum(sizes) != len(linears) or not linears:
            wanted = f"sizes that sum to {len(linears)}, the number of Linears"
            raise ValueError(f"`nclasses_per_group` must be {wanted}, got {sizes} = {sum(sizes)}")
        kinds = {(linear.in_features, linear.out_features, linear.bias is not None) for linear in linears}
        if len(kinds) > 1:
            raise ValueError(f"`linears` must have one (in_features, out_features, bias), got {sorted(kinds)}")
        layer = cls(len(sizes), sizes, *kinds.pop()).to(linears[0].weight)
        states = [linear.state_dict() for linear in linears]
        layer.load_state_dict({name: torch.stack([state[name] for state in states]) for name in states[0]})
        return layer

    def to_linears(self) -> nn.ModuleList:
        """One `nn.Linear` for each class, with copies of the weights: the reverse of `from_linears`."""
        state = self.state_dict()
        linears = nn.ModuleList()
        for k in range(self.n_classes):
            linear = nn.Linear(self.group_channels, self.class_channels, self.bias is not None).to(self.weight)
            linear.load_state_dict({name: stack[k] for name, stack in state.items()})
            linears.append(linear)
        return linears

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, nclasses_per_group={self.nclasses_per_group}, "
            f"group_channels={self.group_channels}, class_channels={self.class_channels}, bias={self.bias is not None}"
        )
