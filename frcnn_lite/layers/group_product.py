"""The products of a GroupLinear in two ways: by class, on repeated input, and by run of equal groups, on the input.

Autograd would give both the same values, and pay for layouts: it transposes the gradient of the weights, or makes it
in pieces and joins them, one more pass over the largest tensor of the layer. The two Functions here write it where it
belongs. What transforms or traces the code (compile, export, autocast, torch.func) gets the plain operations instead.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

Runs = Sequence[tuple[int, int]]  # (groups, classes in each), in order


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
