"""Many small Linear layers as one batched matrix product with an index."""

import math
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from frcnn_lite.layers.run_product import run_product

# Up to this many elements (1 MiB of float32), copying each group's row once for every class costs less time than
# launching one product a run of groups.
REPEAT_BELOW = 2**18


def class_to_group(nclasses_per_group: Sequence[int]) -> Tensor:
    """Which group each class reads, (n_classes,) int64: (3, 0, 5) -> [0, 0, 0, 2, 2, 2, 2, 2]."""
    sizes = torch.tensor(list(nclasses_per_group), dtype=torch.int64)
    return torch.repeat_interleave(torch.arange(len(sizes)), sizes)


class GroupLinear(nn.Module):
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
        super().__init__()
        sizes = tuple(nclasses_per_group)
        if len(sizes) != n_groups or min(sizes, default=-1) < 0:
            raise ValueError(
                f"nclasses_per_group: expected {n_groups} numbers of classes, 0 or more each, got {len(sizes)}: {sizes}"
            )
        _check_positive(group_channels=group_channels, class_channels=class_channels)
        self.n_groups, self.nclasses_per_group, self.n_classes = n_groups, sizes, sum(sizes)
        self.runs = [(len(list(run)), classes) for classes, run in groupby(sizes)]
        self.group_channels, self.class_channels = group_channels, class_channels
        self.weight = nn.Parameter(torch.empty(self.n_classes, class_channels, group_channels))
        self.bias = nn.Parameter(torch.empty(self.n_classes, class_channels)) if bias else None
        self.register_buffer("class_group", class_to_group(sizes), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases as `nn.Linear(group_channels, class_channels)` draws them."""
        _uniform_by_fan_in(self.weight, self.bias, self.group_channels)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1:] != (self.n_groups, self.group_channels):
            raise ValueError(f"x: expected (B, {self.n_groups}, {self.group_channels}), got {tuple(x.shape)}")
        repeated = x.shape[0] * self.n_classes * self.group_channels
        if len(self.runs) > 1 and repeated <= REPEAT_BELOW:
            return self._product_by_class(x)
        return self._product_by_run(x)

    def _product_by_class(self, x: Tensor) -> Tensor:
        """The definition, word for word: repeat each group's row for its classes, then one product a class."""
        return _batched_product(x.index_select(1, self.class_group), self.weight, self.bias)

    def _product_by_run(self, x: Tensor) -> Tensor:
        """One batched product for each run of neighbouring groups with equally many classes: nothing is repeated."""
        out = run_product(x, self.weight, self.runs).permute(2, 0, 1)
        return out if self.bias is None else out + self.bias

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
        weight, bias = _stack_linears(linears)
        layer = cls(len(sizes), sizes, weight.shape[2], weight.shape[1], bias=bias is not None).to(weight)
        _load(layer, weight, bias)
        return layer

    def to_linears(self) -> nn.ModuleList:
        """One `nn.Linear` a class, with copies of the weights: the reverse of `from_linears`."""
        return _to_linears(self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, nclasses_per_group={self.nclasses_per_group}, "
            f"group_channels={self.group_channels}, class_channels={self.class_channels}, bias={self.bias is not None}"
        )


class GroupDividedLinear(nn.Module):
    """One Linear per group, each reading its own slice: (B, G, in) -> (B, G, out), einsum `bgi,gio->bgo`.

    `weight` is (G, out, in) and `bias` (G, out), stacked `nn.Linear`s; the equation's `gio` is its transposed view.
    Source: `group_divided_linear` of the post, which stops before its forward.
    """

    def __init__(self, n_groups: int, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        _check_positive(n_groups=n_groups, in_features=in_features, out_features=out_features)
        self.n_groups, self.in_features, self.out_features = n_groups, in_features, out_features
        self.weight = nn.Parameter(torch.empty(n_groups, out_features, in_features))
        self.bias = nn.Parameter(torch.empty(n_groups, out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases as `nn.Linear(in_features, out_features)` draws them."""
        _uniform_by_fan_in(self.weight, self.bias, self.in_features)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1:] != (self.n_groups, self.in_features):
            raise ValueError(f"x: expected (B, {self.n_groups}, {self.in_features}), got {tuple(x.shape)}")
        return _batched_product(x, self.weight, self.bias)

    @classmethod
    def from_linears(cls, linears: Sequence[nn.Linear]) -> "GroupDividedLinear":
        """The layer that computes what a loop over `linears` (one a group) computes; weights copied."""
        if not linears:
            raise ValueError("linears: expected at least one, got none")
        weight, bias = _stack_linears(linears)
        layer = cls(len(linears), weight.shape[2], weight.shape[1], bias=bias is not None).to(weight)
        _load(layer, weight, bias)
        return layer

    def to_linears(self) -> nn.ModuleList:
        """One `nn.Linear` a group, with copies of the weights: the reverse of `from_linears`."""
        return _to_linears(self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def _batched_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`bni,noi->bno` plus bias (n, o). The weight stands first, so that its gradient comes out in its own layout."""
    columns = x.permute(1, 2, 0)
    out = torch.bmm(weight, columns) if bias is None else torch.baddbmm(bias.unsqueeze(2), weight, columns)
    return out.permute(2, 0, 1)


def _uniform_by_fan_in(weight: Tensor, bias: Tensor | None, fan_in: int) -> None:
    bound = 1 / math.sqrt(fan_in)
    nn.init.uniform_(weight, -bound, bound)
    if bias is not None:
        nn.init.uniform_(bias, -bound, bound)


def _stack_linears(linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    kinds = {(linear.in_features, linear.out_features, linear.bias is not None) for linear in linears}
    if len(kinds) != 1:
        raise ValueError(f"linears: expected one (in_features, out_features, bias) for all, got {sorted(kinds)}")
    weight = torch.stack([linear.weight.detach() for linear in linears])
    if linears[0].bias is None:
        return weight, None
    return weight, torch.stack([linear.bias.detach() for linear in linears])


def _load(layer: GroupLinear | GroupDividedLinear, weight: Tensor, bias: Tensor | None) -> None:
    with torch.no_grad():
        layer.weight.copy_(weight)
        if layer.bias is not None and bias is not None:
            layer.bias.copy_(bias)


def _to_linears(weight: Tensor, bias: Tensor | None) -> nn.ModuleList:
    linears = nn.ModuleList()
    for k, rows in enumerate(weight.detach()):
        linear = nn.Linear(rows.shape[1], rows.shape[0], bias=bias is not None).to(weight)
        state = {"weight": rows} if bias is None else {"weight": rows, "bias": bias.detach()[k]}
        linear.load_state_dict(state)
        linears.append(linear)
    return linears


def _check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: expected 1 or more, got {size}")
