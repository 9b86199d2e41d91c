"""Many small Linear layers as one batched matrix product with an index."""

import math
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from frcnn_lite.layers.group_product import product_by_class, product_by_run

# Up to this many elements (1 MiB of float32), copying each group's row once for every class costs less time than
# launching one product a run of groups.
REPEAT_BELOW = 2**18


def class_to_group(nclasses_per_group: Sequence[int]) -> Tensor:
    """Which group each class reads, (n_classes,) int64: (3, 0, 5) -> [0, 0, 0, 2, 2, 2, 2, 2]."""
    sizes = torch.tensor(list(nclasses_per_group), dtype=torch.int64)
    return torch.repeat_interleave(torch.arange(len(sizes)), sizes)


class StackedLinears(nn.Module):
    """Linears of one shape, stacked into `weight` (count, out, in) and `bias` (count, out): shared by the two below."""

    def __init__(self, count: int, in_features: int, out_features: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, out_features, in_features))
        self.bias = nn.Parameter(torch.empty(count, out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases as `nn.Linear(in_features, out_features)` draws them."""
        bound = 1 / math.sqrt(self.weight.shape[2])
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def to_linears(self) -> nn.ModuleList:
        """One `nn.Linear` for each of the stack, with copies of the weights: the reverse of `from_linears`."""
        count, out_features, in_features = self.weight.shape
        has_bias = self.bias is not None
        linears = nn.ModuleList(nn.Linear(in_features, out_features, has_bias).to(self.weight) for _ in range(count))
        for k, linear in enumerate(linears):
            linear.load_state_dict({name: stack[k] for name, stack in self.named_parameters()})
        return linears

    def _copy_from(self, linears: Sequence[nn.Linear]) -> None:
        for name, stack in self.named_parameters():
            stack.data.copy_(torch.stack([getattr(linear, name).detach() for linear in linears]))


def _common_shape(linears: Sequence[nn.Linear]) -> tuple[int, int, bool]:
    """(in_features, out_features, whether with bias) of all `linears`; ValueError where they differ or are none."""
    kinds = {(linear.in_features, linear.out_features, linear.bias is not None) for linear in linears}
    if len(kinds) != 1:
        raise ValueError(f"linears: expected one (in_features, out_features, bias) for all, got {sorted(kinds)}")
    return kinds.pop()


class GroupLinear(StackedLinears):
    """One Linear per class, each reading its group's features: (B, G, Cg) -> (B, n_classes, Cc).

    Class c computes `x[:, group of c] @ weight[c].T + bias[c]`, in einsum `bni,noi->bno` on rows repeated by class.
    `weight` is (n_classes, Cc, Cg) and `bias` (n_classes, Cc): those of a list of `nn.Linear`, stacked as they are.
    A group may have any number of classes, none included. The repeated rows, n_classes / G times the input, are not
    stored, except below a million bytes, where one copy costs less than a product for each run of groups.
    Source: `Parallel_GroupLinear` of the post, completed; its bound 1 / sqrt(n_classes) is 1 / sqrt(Cg) here, as in
    `nn.Linear`, because Cg numbers are summed.
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
        sizes = tuple(nclasses_per_group)
        if len(sizes) != n_groups or min(sizes, default=-1) < 0:
            raise ValueError(
                f"nclasses_per_group: expected {n_groups} numbers of classes, 0 or more each, got {len(sizes)}: {sizes}"
            )
        _check_positive(group_channels=group_channels, class_channels=class_channels)
        super().__init__(sum(sizes), group_channels, class_channels, bias)
        self.n_groups, self.nclasses_per_group, self.n_classes = n_groups, sizes, sum(sizes)
        self.runs = [(len(list(run)), classes) for classes, run in groupby(sizes)]
        self.group_channels, self.class_channels = group_channels, class_channels
        self.register_buffer("class_group", class_to_group(sizes), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1:] != (self.n_groups, self.group_channels):
            raise ValueError(f"x: expected (B, {self.n_groups}, {self.group_channels}), got {tuple(x.shape)}")
        repeated = x.shape[0] * self.n_classes * self.group_channels
        if len(self.runs) > 1 and repeated <= REPEAT_BELOW:
            return product_by_class(x, self.weight, self.bias, self.class_group)
        return product_by_run(x, self.weight, self.bias, self.runs)

    @classmethod
    def from_linears(cls, linears: Sequence[nn.Linear], nclasses_per_group: Sequence[int]) -> "GroupLinear":
        """The layer that computes what a loop over `linears` (by class, group after group) computes; weights copied.

        Raises ValueError when the sizes do not add up to the number of Linears, or the Linears differ in shape.
        """
        sizes = tuple(nclasses_per_group)
        if sum(sizes) != len(linears) or not linears:
            raise ValueError(
                f"nclasses_per_group: expected sizes that sum to {len(linears)}, the number of Linears, "
                f"got {sizes} = {sum(sizes)}"
            )
        layer = cls(len(sizes), sizes, *_common_shape(linears)).to(linears[0].weight)
        layer._copy_from(linears)
        return layer

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, nclasses_per_group={self.nclasses_per_group}, "
            f"group_channels={self.group_channels}, class_channels={self.class_channels}, bias={self.bias is not None}"
        )


class GroupDividedLinear(StackedLinears):
    """One Linear per group, each reading its own slice: (B, G, in) -> (B, G, out), einsum `bgi,gio->bgo`.

    `weight` is (G, out, in) and `bias` (G, out), stacked `nn.Linear`s; the equation's `gio` is its transposed view.
    Source: `group_divided_linear` of the post, which stops before its forward.
    """

    def __init__(self, n_groups: int, in_features: int, out_features: int, bias: bool = True) -> None:
        _check_positive(n_groups=n_groups, in_features=in_features, out_features=out_features)
        super().__init__(n_groups, in_features, out_features, bias)
        self.n_groups, self.in_features, self.out_features = n_groups, in_features, out_features

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1:] != (self.n_groups, self.in_features):
            raise ValueError(f"x: expected (B, {self.n_groups}, {self.in_features}), got {tuple(x.shape)}")
        return product_by_run(x, self.weight, self.bias, [(self.n_groups, 1)])

    @classmethod
    def from_linears(cls, linears: Sequence[nn.Linear]) -> "GroupDividedLinear":
        """The layer that computes what a loop over `linears` (one a group) computes; weights copied."""
        if not linears:
            raise ValueError("linears: expected at least one, got none")
        layer = cls(len(linears), *_common_shape(linears)).to(linears[0].weight)
        layer._copy_from(linears)
        return layer

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def _check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: expected 1 or more, got {size}")
