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
    told: str = ""  # the argument whose text stands in the place of `text`, where it is given

    def lines(self, given: Given) -> Iterator[str]:
        """What CUDA prints, a line for each thread."""
        text = given.get(self.told, self.text)
        for number in self.threads(given).tolist():
            where = f"block: [{number // (self.block * self.work)},0,0], thread: [{number % self.block},0,0]"
            yield f"/pytorch/aten/src/ATen/native/cuda/{self.place}: {where} Assertion `{text}` failed."


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
    assertions = _ASSERTIONS.get(func._schema.name.removeprefix("aten::"), ()) if contexts.is_late() else ()
    over = contexts.has_ended(ordinal)  # then no kernel runs that could meet anything
    if not (over or assertions):
        return NotImplemented
    try:
        failed = next(((one, lines) for one in assertions if (lines := list(one.lines(given)))), None)
        if not (over or failed):
            return NotImplemented
        result = _unread(func, given) if written == 0 else None if written == 1 else (None,) * written
    except (RuntimeError, IndexError):
        return NotImplemented  # shapes or dtypes do not fit, either, which is refused before any kernel runs
    if failed is not None:
        contexts.end(ordinal, failed[1], failed[0].more(given))
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


def _labels(applies: Callable[[Given], bool]) -> Callable[[Given], torch.Tensor]:
    """The threads of the kernel that takes these arguments."""

    def threads(given: Given) -> torch.Tensor:
        target, logits = given["target"], given["self"]
        failed = _outside(target, logits.size(min(1, logits.dim() - 1)))
        return _where(failed & (target != given.get("ignore_index", -100)) & applies(given))

    return threads


def _no_probability(name: str) -> Callable[[Given], torch.Tensor]:
    return lambda given: _where(~((given[name] >= 0) & (given[name] <= 1)))


def _chances(given: Given) -> torch.Tensor:
    weights = given["self"]
    return _first(bool((torch.isfinite(weights) & (weights >= 0)).all()))


def _no_chance(given: Given) -> torch.Tensor:
    return _first(not bool((given["self"].sum(-1) == 0).any()))


def _bags(given: Given) -> torch.Tensor:
    rows = given["weight"].size(0)
    return torch.arange(given["weight"].size(1) if _outside(given["indices"], rows).any() else 0)


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
_LABELS = "t >= 0 && t < n_classes"
_LABELLED = (
    _Assertion(
        "Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d",
        _LABELS,
        _labels(lambda given: given["self"].dim() > 1 and given["reduction"] != 0),
        block=32,
        work=1 << 40,
    ),
    _Assertion(
        "Loss.cu:202: nll_loss_forward_reduce_cuda_kernel_1d",
        _LABELS,
        _labels(lambda given: given["self"].dim() < 2),
        block=1,
    ),
    _Assertion(
        "Loss.cu:181: nll_loss_forward_no_reduce_cuda_kernel",
        "cur_target >= 0 && cur_target < n_classes",
        _labels(lambda given: given["self"].dim() > 1 and given["reduction"] == 0),
        block=1024,
        work=1,
    ),
)
_PIXELS = _Assertion(
    "NLLLoss2d.cu:104: nll_loss2d_forward_kernel", _LABELS, _labels(lambda given: True), block=1024, work=1
)
_SUMMED = _Assertion(
    "Loss.cu:90: operator()",
    "input_val >= zero && input_val <= one",
    _no_probability("self"),
    more=lambda given: given.get("reduction", 1) != 0,
)
_ASSERTED = _Assertion(
    "TensorCompare.cu:109: _assert_async_cuda_kernel",
    "Expected Tensor with single nonzero value, but got zero",
    lambda given: _first(bool(given["self"])),
    told="assert_msg",
)
_CHANCES = dataclasses.replace(
    _ASSERTED,
    text="probability tensor contains either `inf`, `nan` or element < 0",
    threads=_chances,
    more=lambda given: True,
)
_BAGS = _Assertion(
    "EmbeddingBag.cu:150: EmbeddingBag_updateOutputKernel_sum_mean", "input[emb] < numRows", _bags, work=1
)
_SIZED = _Assertion(
    "IndexKernel.cu:380: masked_scatter_size_check",
    "totalElements <= srcSize",
    lambda given: _first(int(given["mask"].expand_as(given["self"]).sum()) <= given["source"].numel()),
)
_RATE = _Assertion(
    "Distributions.cu:52: operator()",
    'lambda >= 0 && "invalid Poisson rate, expected rate to be non-negative"',
    lambda given: _where(given["self"] < 0),
)
_CHANCE = "DistributionBernoulli.cu:105: operator()", "0 <= p1 && p1 <= 1"

# By the name of the operator, for all of its overloads. A GPU was asked for lines 90, 109, 111, 163, 245 and 1515 of
# files; the others are about there, for they were counted in sources of other versions.
_ASSERTIONS: dict[str, tuple[_Assertion, ...]] = {
    "embedding": (_Assertion(*_SELECTED, _rows("weight", "indices"), work=1),),
    "_embedding_bag": (_BAGS,),
    "_embedding_bag_forward_only": (_BAGS,),
    "index_select": (_Assertion(*_SELECTED, _rows("self", "index"), work=1),),
    "index": (_INDEXED,),
    "index_put": (_INDEXED,),
    "index_put_": (_INDEXED,),
    "_index_put_impl_": (_INDEXED,),
    "index_add": (_ADDED,),
    "index_add_": (_ADDED,),
    "index_reduce": (_ADDED,),
    "index_reduce_": (_ADDED,),
    "index_copy": (_COPIED,),
    "index_copy_": (_COPIED,),
    "index_fill": (_FILLED,),
    "index_fill_": (_FILLED,),
    "gather": (_SCATTERED,),
    **{name + place: (_SCATTERED,) for name in ("scatter", "scatter_add", "scatter_reduce") for place in ("", "_")},
    "take": (_TAKEN,),
    "put": (_TAKEN,),
    "put_": (_TAKEN,),
    "masked_scatter": (_SIZED,),
    "masked_scatter_": (_SIZED,),
    "nll_loss_forward": _LABELLED,
    "nll_loss2d_forward": (_PIXELS,),
    "binary_cross_entropy": (
        _SUMMED,
        dataclasses.replace(
            _SUMMED,
            place="Loss.cu:91: operator()",
            text="target_val >= zero && target_val <= one",
            threads=_no_probability("target"),
        ),
    ),
    "multinomial": (
        _CHANCES,
        dataclasses.replace(
            _CHANCES, text="invalid multinomial distribution (sum of probabilities <= 0)", threads=_no_chance
        ),
    ),
    "bernoulli": (_Assertion(*_CHANCE, _no_probability("self")),),
    "bernoulli_": (_Assertion(*_CHANCE, _no_probability("p")),),
    "poisson": (_RATE,),
    "_assert_async": (_ASSERTED,),
}
