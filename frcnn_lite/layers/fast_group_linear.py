"""`GroupLinear` of group_linear.py, faster: the same state dict, the same outputs and gradients, less memory and time.

`x[:, class_group]` writes each group's row once for every class, and keeps that for backward. Here it is written only
where that is cheap. Where it is not, the weights of a group, which lie end to end, are used as one matrix, and
neighbouring groups with equally many classes, a run, are one batched product.

Autograd would give the same values, and pay for layouts: it transposes the gradient of the weights, or makes it in
pieces and joins them, one more pass over the largest tensor of the layer. The two Functions here write it where it
belongs. What transforms or traces the code (compile, export, autocast, torch.func) gets the plain operations instead.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

Runs = Sequence[tuple[int, int]]  # (groups, classes in each), in order

# Up to this many elements (1 MiB of float32), copying each group's row once for every class costs less time than
# launching one product a run of groups.
REPEAT_BELOW = 2**18


class FastGroupLinear(nn.Module):
    """One Linear per class, each reading its group's features: (B, G, Cg) -> (B, n_classes, Cc).

    Parameters, state dict, values and errors are those of `GroupLinear`, so that one can take the place of the other:
    `fast.load_state_dict(plain.state_dict())`.

    Args:
        n_groups: G, the groups of features.
        nclasses_per_group: how many classes read each group, 0 or more.
        group_channels: Cg, the features of a group.
        class_channels: Cc, the numbers that a class gives.
        bias: whether a bias is learned.

    Raises:
        ValueError: sizes do not fit each other, or an input has a different shape.
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
        self.runs = [(len(list(run)), classes) for classes, run in groupby(sizes)]
        self.weight = nn.Parameter(torch.empty(self.n_classes, class_channels, group_channels))
        self.bias = nn.Parameter(torch.empty(self.n_classes, class_channels)) if bias else None
        class_group = torch.repeat_interleave(torch.arange(n_groups), torch.tensor(sizes))
        self.register_buffer("class_group", class_group, persistent=False)
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
        repeated = x.shape[0] * self.n_classes * self.group_channels
        if len(self.runs) > 1 and repeated <= REPEAT_BELOW:
            return product_by_class(x, self.weight, self.bias, self.class_group)
        return product_by_run(x, self.weight, self.bias, self.runs)

    def extra_repr(self) -> str:
        return (
            f"n_groups={self.n_groups}, nclasses_per_group={self.nclasses_per_group}, "
            f"group_channels={self.group_channels}, class_channels={self.class_channels}, bias={self.bias is not None}"
        )


def product_by_class(x: Tensor, weight: Tensor, bias: Tensor | None, class_group: Tensor) -> Tensor:
    """x (B, G, in), weight (n, out, in), bias (n, out) -> (B, n, out): each group's row repeated for its classes."""
    if _is_transformed(x):
        return _plain_by_class(x, weight, bias, class_group)
    return _ByClass.apply(x, weight, bias, class_group)


def product_by_run(x: Tensor, weight: Tensor, bias: Tensor | None, runs: Runs) -> Tensor:
    """The same without repeating: a group's weights lie end to end, so they are one matrix, and a run's one batch."""
    product = _plain_by_run if len(runs) == 1 or _is_transformed(x) else _ByRun.apply
    out = product(x, weight, runs)
    return out if bias is None else out + bias


def _is_transformed(x: Tensor) -> bool:
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._are_functorch_transforms_active()
        or torch.is_autocast_enabled(x.device.type)
    )


def _plain_by_class(x: Tensor, weight: Tensor, bias: Tensor | None, class_group: Tensor) -> Tensor:
    rows = x.index_select(1, class_group)
    out = torch.bmm(rows.transpose(0, 1), weight.mT).transpose(0, 1)
    return out if bias is None else out + bias


class _ByClass(Function):
    """`_plain_by_class`, every product with the few rows of the batch first: for them the kernels are fastest."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, class_group: Tensor) -> Tensor:
        rows = x.index_select(1, class_group).transpose(0, 1)
        ctx.save_for_backward(x, weight, bias, class_group, rows)
        out = torch.bmm(rows, weight.mT).transpose(0, 1)
        return out if bias is None else out.add_(bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, class_group, rows = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: let autograd see the operations
            inputs = [t for t in (x, weight, bias) if t is not None]
            grads = torch.autograd.grad(_plain_by_class(x, weight, bias, class_group), inputs, grad, create_graph=True)
            return *grads, *[None] * (4 - len(grads))
        grad_rows = grad.transpose(0, 1)
        grad_x = torch.zeros_like(x).index_add_(1, class_group, torch.bmm(grad_rows, weight).transpose(0, 1))
        return grad_x, torch.bmm(grad_rows.mT, rows), None if bias is None else grad.sum(0), None


def _plain_by_run(x: Tensor, weight: Tensor, runs: Runs) -> Tensor:
    columns = x.permute(1, 2, 0)
    products = [torch.bmm(_matrices(weight[c], n), columns[g]).flatten(0, 1) for g, c, n in _slices(runs)]
    out = torch.cat(products) if len(products) > 1 else products[0]
    return out.view(*weight.shape[:2], x.shape[0]).permute(2, 0, 1)


class _ByRun(Function):
    """`_plain_by_run`, with each result written into its place in one tensor, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, runs: Runs) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.runs = runs
        columns, out = x.permute(1, 2, 0), x.new_empty(*weight.shape[:2], x.shape[0])
        for g, c, n in _slices(runs):
            torch.bmm(_matrices(weight[c], n), columns[g], out=_matrices(out[c], n))
        return out.permute(2, 0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *torch.autograd.grad(_plain_by_run(x, weight, ctx.runs), (x, weight), grad, create_graph=True), None
        rows, grad = x.transpose(0, 1), grad.permute(1, 2, 0).contiguous()
        grad_columns, grad_weight = x.new_empty(*x.shape[1:], x.shape[0]), torch.empty_like(weight)
        for g, c, n in _slices(ctx.runs):
            torch.bmm(_matrices(grad[c], n), rows[g], out=_matrices(grad_weight[c], n))
            torch.bmm(_matrices(weight[c], n).transpose(1, 2), _matrices(grad[c], n), out=grad_columns[g])
        return grad_columns.permute(2, 0, 1), grad_weight, None


def _slices(runs: Runs) -> Iterator[tuple[slice, slice, int]]:
    """Of each run: its groups, its classes, and the number of its groups."""
    group = first = 0
    for groups, classes in runs:
        yield slice(group, group + groups), slice(first, first + groups * classes), groups
        group, first = group + groups, first + groups * classes


def _matrices(classes: Tensor, groups: int) -> Tensor:
    """(groups * k, out, n) as one matrix a group: (groups, k * out, n), a view."""
    return classes.view(groups, classes.shape[0] // groups * classes.shape[1], classes.shape[2])
