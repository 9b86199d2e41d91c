"""One batched product for each run of neighbouring groups with equally many classes, input rows never repeated.

(B, G, in) times weights (n_classes, out, in) of groups that lie end to end: a group's weights are one matrix, and those
of a run of equal groups are one batch of matrices, without being moved.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

Runs = Sequence[tuple[int, int]]  # (groups, classes in each), in order


def run_product(x: Tensor, weight: Tensor, runs: Runs) -> Tensor:
    """x (B, G, in), weight (n_classes, out, in) -> (n_classes, out, B): class c times its group's row of x.

    For several runs autograd would make the weights' gradient piece by piece and then join the pieces, one more pass
    over the largest tensor of the layer. `_RunProduct` writes the pieces to where they belong. What transforms or
    traces the code (compile, export, autocast, torch.func) gets the plain operations instead.
    """
    transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if len(runs) == 1 or transformed or torch.is_autocast_enabled(x.device.type):
        return _plain(x, weight, runs)
    return _RunProduct.apply(x, weight, runs)


def _plain(x: Tensor, weight: Tensor, runs: Runs) -> Tensor:
    columns = x.permute(1, 2, 0)
    products = [torch.bmm(_matrices(weight[c], n), columns[g]).flatten(0, 1) for g, c, n in _slices(runs)]
    out = torch.cat(products) if len(products) > 1 else products[0]
    return out.view(weight.shape[0], weight.shape[1], x.shape[0])


class _RunProduct(Function):
    """`_plain`, with each result written into its place in one tensor, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, runs: Runs) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.runs = runs
        columns, out = x.permute(1, 2, 0), x.new_empty(*weight.shape[:2], x.shape[0])
        for g, c, n in _slices(runs):
            torch.bmm(_matrices(weight[c], n), columns[g], out=_matrices(out[c], n))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: let autograd see the operations
            return *torch.autograd.grad(_plain(x, weight, ctx.runs), (x, weight), grad, create_graph=True), None
        rows, grad = x.transpose(0, 1), grad.contiguous()
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
