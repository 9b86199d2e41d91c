"""What CUDA's kernels assert of the values they meet, and what they print where it does not hold.

The CPU's kernels refuse the same values, at once and in other words. Where errors are to come late (contexts.py), this
file finds the threads that would have failed, and a result in the place of theirs, which nobody will be able to read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from vgpu.machine import contexts

Given = dict[str, Any]  # the arguments of a call by their names, on the host


@dataclasses.dataclass(frozen=True)
class _Assertion:
    """One assertion of a kernel."""

    place: str  # file and line below aten/src/ATen/native/cuda, and the kernel, as torch 2.11 prints them
    text: str
    threads: Callable[[Given], torch.Tensor]  # the numbers of those in which it does not hold
    block: int = 128  # threads of a block
    work: int = 4  # what each of them computes, one block's width apart
    more: Callable[[Given], bool] = lambda given: False  # whether kernels follow in the same call, which find it

    def lines(self, given: Given) -> Iterator[str]:
        """What CUDA prints, a line for each thread."""
        for number in self.threads(given).tolist():
            where = f"block: [{number // (self.block * self.work)},0,0], thread: [{number % self.block},0,0]"
            yield f"/pytorch/aten/src/ATen/native/cuda/{self.place}: {where} Assertion `{self.text}` failed."


def answer(func: torch._ops.OpOverload, given: Given, ordinal: int, written: int) -> Any:
    """Let the device's context end if a kernel's assertion is why the CPU refuses a call.

    Args:
        func: the operator that was called.
        given: its arguments.
        ordinal: the device.
        written: the number of its results if each is an argument that it writes to, else 0.

    Returns:
        what the operator returns on a device that is beyond reading, or NotImplemented if the refusal stays one.
    """
    assertion = _ASSERTIONS.get(func._schema.name.removeprefix("aten::"))
    over = contexts.has_ended(ordinal)  # then no kernel runs that could meet anything
    if not (over or (assertion is not None and contexts.is_late())):
        return NotImplemented
    try:
        lines = list(assertion.lines(given)) if assertion is not None else []
        if not (over or lines):
            return NotImplemented
        result = _unread(func, given) if written == 0 else None if written == 1 else (None,) * written
    except (RuntimeError, IndexError):
        return NotImplemented  # shapes or dtypes do not fit, either, which is refused before any kernel runs
    contexts.end(ordinal, lines, assertion is not None and assertion.more(given))
    return result


def _unread(func: Any, given: Given) -> Any:
    """A result of the shape it would have had."""
    meta = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), given)
    meta.pop("generator", None)
    named = {argument.name for argument in func._schema.arguments if argument.kwarg_only}
    placed = [value for name, value in meta.items() if name not in named]
    result = func(*placed, **{name: value for name, value in meta.items() if name in named})
    return tree_map_only(torch.Tensor, lambda tensor: torch.zeros_like(tensor, device="cpu"), result)


def _where(failed: torch.Tensor) -> torch.Tensor:
    return failed.reshape(-1).nonzero().reshape(-1)


def _outside(index: torch.Tensor, size: int, lowest: int = 0) -> torch.Tensor:
    return (index < lowest) | (index >= size)


def _first(holds: bool) -> torch.Tensor:
    """The only thread, if it fails."""
    return torch.zeros(0 if holds else 1, dtype=torch.int64)


def _slice(tensor: torch.Tensor, dim: int) -> int:
    """How many numbers of a tensor belong to one index of a dimension."""
    return tensor.numel() // max(1, tensor.size(dim)) if tensor.dim() else 1


def _at(index: str, lowest: Callable[[int], int] = lambda size: 0) -> Callable[[Given], torch.Tensor]:
    """The threads of a kernel that has one for each index and number of its slice."""

    def threads(given: Given) -> torch.Tensor:
        tensor, dim = given["self"], given["dim"]
        size = tensor.size(dim) if tensor.dim() else 1
        failed = _outside(given[index].reshape(-1), size, lowest(size))
        return _where(failed.repeat_interleave(_slice(tensor, dim)))

    return threads


def _rows(source: str, index: str) -> Callable[[Given], torch.Tensor]:
    """The threads of a kernel that goes through the indices with one for each number of a slice."""

    def threads(given: Given) -> torch.Tensor:
        tensor, dim = given[source], given.get("dim", 0)
        failed = _outside(given[index], tensor.size(dim) if tensor.dim() else 1).any()
        return torch.arange(_slice(tensor, dim) if failed else 0)

    return threads


def _gathered(given: Given) -> torch.Tensor:
    tensor, dim = given["self"], given["dim"]
    return _where(_outside(given["index"], tensor.size(dim) if tensor.dim() else 1))


def _indexed(given: Given) -> torch.Tensor:
    tensor, failed, dim = given["self"], torch.tensor(False), 0
    for index in given["indices"]:
        if index is None:
            dim += 1
        elif index.dtype in (torch.bool, torch.uint8):
            dim += index.dim()
        else:
            failed = failed | _outside(index, tensor.size(dim), -tensor.size(dim))
            dim += 1
    held = math.prod(tensor.shape[i] for i in range(tensor.dim()) if i >= dim or given["indices"][i] is None)
    return _where(failed.reshape(-1).repeat_interleave(held))


def _labels(given: Given) -> torch.Tensor:
    classes = given["self"].size(1 if given["self"].dim() > 1 else 0)
    target = given["target"]
    return _where(_outside(target, classes) & (target != given.get("ignore_index", -100)))


def _no_probability(name: str) -> Callable[[Given], torch.Tensor]:
    return lambda given: _where(~((given[name] >= 0) & (given[name] <= 1)))


def _drawn(given: Given) -> torch.Tensor:
    weights = given["self"]
    return _first(bool((torch.isfinite(weights) & (weights >= 0)).all()))


_TAKEN = _Assertion(
    "IndexKernel.cu:298: operator()",
    'idx < numel && idx >= -numel && "cuda_take_put_kernel() index out of bounds"',
    lambda given: _where(_outside(given["index"], given["self"].numel(), -given["self"].numel())),
)
_SCATTERED = _Assertion(
    "ScatterGatherKernel.cu:163: operator()",
    'idx_dim >= 0 && idx_dim < index_size && "scatter gather kernel index out of bounds"',
    _gathered,
)
_INDEXED = _Assertion(
    "IndexKernel.cu:111: operator()",
    '-sizes[i] <= index && index < sizes[i] && "index out of bounds"',
    _indexed,
)
_FILLED = _Assertion(
    "IndexKernel.cu:154: operator()",
    'idx >= -self_dim_size && idx < self_dim_size && "index out of bounds"',
    _at("index", lambda size: -size),
)
_COPIED = _Assertion(
    "IndexKernel.cu:193: operator()",
    'idx >= 0 && idx < self_dim_size && "index_copy_(): index out of bounds"',
    _at("index"),
)
_ADDED = _Assertion("Indexing.cu:1110: indexFuncSmallIndex", "dstIndex < dstAddDimSize", _rows("self", "index"), work=1)
_SELECTED = "Indexing.cu:1515: indexSelectSmallIndex", "srcIndex < srcSelectDimSize"
_LABELLED = _Assertion(
    "Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes", _labels, block=32, work=1 << 40
)
_CHANCE = "DistributionBernoulli.cu:105: operator()", "0 <= p4 && p4 <= 1"

# By the name of the operator, for all of its overloads. The lines of files are those that a GPU printed, or counted in
# the source where it was not asked.
_ASSERTIONS = {
    "embedding": _Assertion(*_SELECTED, _rows("weight", "indices"), work=1),
    "index_select": _Assertion(*_SELECTED, _rows("self", "index"), work=1),
    "index": _INDEXED,
    "index_put": _INDEXED,
    "index_put_": _INDEXED,
    "_index_put_impl_": _INDEXED,
    "index_add": _ADDED,
    "index_add_": _ADDED,
    "index_copy": _COPIED,
    "index_copy_": _COPIED,
    "index_fill": _FILLED,
    "index_fill_": _FILLED,
    "gather": _SCATTERED,
    **{name + place: _SCATTERED for name in ("scatter", "scatter_add", "scatter_reduce") for place in ("", "_")},
    "take": _TAKEN,
    "put": _TAKEN,
    "put_": _TAKEN,
    "nll_loss_forward": _LABELLED,
    "nll_loss2d_forward": dataclasses.replace(
        _LABELLED, place="NLLLoss2d.cu:104: nll_loss2d_forward_kernel", block=1024, work=1
    ),
    "binary_cross_entropy": _Assertion(
        "Loss.cu:90: operator()",
        "input_val >= zero && input_val <= one",
        _no_probability("self"),
        more=lambda given: given.get("reduction", 1) != 0,
    ),
    "multinomial": _Assertion(
        "TensorCompare.cu:109: _assert_async_cuda_kernel",
        "probability tensor contains either `inf`, `nan` or element < 0",
        _drawn,
        more=lambda given: True,
    ),
    "bernoulli": _Assertion(*_CHANCE, _no_probability("self")),
    "bernoulli_": _Assertion(*_CHANCE, _no_probability("p")),
    "_assert_async": _Assertion(
        "TensorCompare.cu:109: _assert_async_cuda_kernel",
        "Expected Tensor with single nonzero value, but got zero",
        lambda given: _first(bool(given["self"])),
    ),
}
