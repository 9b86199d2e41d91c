"""Collectives over tensors of virtual GPUs: they travel over gloo, and a group that asked for NCCL goes by its rules.

NCCL counts elements where gloo compares shapes; it has reductions that gloo lacks, and lacks some that gloo has. The
words of the refusals are those of torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch.utils._pytree import tree_map

from vgpu.base import errors
from vgpu.distributed import agreement, groups
from vgpu.machine import memory
from vgpu.tensors import tensor

dist: Any = torch.distributed  # PyTorch declares little of what is used of it here

_GATHERS = ("_allgather_base_", "allgather_into_tensor_coalesced_")
_REDUCES = ("_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_")
_INTO_ONE = frozenset((*_GATHERS, *_REDUCES))
_BETWEEN_TWO = frozenset(("send", "recv_", "recv_any_source_", "isend", "irecv", "batch_p2p_ops"))
# Their tensors are cut along their first dimension, so they keep their shape.
_CUT = frozenset(("alltoall_base_",))
_NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
_NOT_BOUND = "Attempt to perform collective on tensor not on device passed to init_process_group"
# The table of backends in PyTorch's documentation has no tick for them; on GPUs the address of the tensor is of no use
# to gloo's sockets, which end with "Bad address".
_NOT_BY_GLOO = (
    "gloo sends and receives no tensors of GPUs: send tensor.cpu(), or initialise the group with backend 'nccl'. On "
    "GPUs this call ends with 'writev: Bad address'."
)
# What NCCL has no type for.
_NOT_SENT = frozenset((torch.int16, torch.uint16, torch.uint32, torch.uint64))


def is_collective(func: torch._ops.OpOverload) -> bool:
    """True for the operators that communicate in a process group; waiting for one names no group."""
    names = {argument.name for argument in func._schema.arguments}
    return func.namespace in _NAMESPACES and not names.isdisjoint(("process_group", "group_name"))


class Collective:
    """What must be known of one operator of `c10d` or of the functional collectives."""

    def __init__(self, func: torch._ops.OpOverload) -> None:
        self.name = func._schema.name.partition("::")[2]
        names = [argument.name for argument in func._schema.arguments]
        self.functional = "group_name" in names
        self.group = names.index("group_name" if self.functional else "process_group")
        self.reduces = names.index("reduce_op") if "reduce_op" in names else None
        self.root = next((names.index(name) for name in ("root_rank", "src") if name in names), None)
        self._background = names.index("async_op") if "async_op" in names else None

    def described(self, args: list) -> str:
        """The name of this call, with the shape of what it sends."""
        one = next(self._sent(args), None)
        of = "" if one is None else f" of {tuple(one.shape)} {str(one.dtype).removeprefix('torch.')}"
        return self.name.strip("_") + of

    def _sent(self, args: list) -> Iterator[torch.Tensor]:
        """Its tensors; that of a barrier is PyTorch's own, and nobody reads it."""
        return leaves([] if self.name == "barrier" else args[: self.group])

    def is_waited_for(self, args: list) -> bool:
        """True where the caller waits for the work that it gets, at once or later."""
        waits = self._background is not None and args[self._background : self._background + 1] == [False]
        return not self.functional and (waits or self.name in _BETWEEN_TWO)

    def name_of_group(self, args: list) -> str:
        """The name by which PyTorch knows the group of this call."""
        group = args[self.group]
        return group if isinstance(group, str) else _unboxed(group).group_name

    def routed(self, args: list, ordinal: int) -> tuple[list, groups.Route]:
        """The arguments with the group that takes CPU tensors, after the checks of NCCL."""
        group, args = args[self.group], [*args]
        if isinstance(group, str):
            found = groups.named(group)
            args[self.group] = found.name
        else:
            found = groups.route(_unboxed(group))
            args[self.group] = found.group if isinstance(group, dist.ProcessGroup) else found.group.boxed()
        if found.nccl:
            self._by_nccls_rules(args, found, ordinal)
        elif self.name in _BETWEEN_TWO:
            raise RuntimeError(_NOT_BY_GLOO)
        if self.name in _INTO_ONE:
            _check_sizes(self.name, args, found.size)
        if not self.functional and (found.nccl or self.name in _INTO_ONE) and self.name not in _CUT:
            args[: self.group] = [tree_map(_row, value) for value in args[: self.group]]
        return args, found

    def _by_nccls_rules(self, args: list, found: groups.Route, ordinal: int) -> None:
        tensors = list(self._sent(args))
        for one in tensors:
            _check(one, self.name)
        if found.bound is not None and found.bound.index != ordinal and self.name != "barrier":
            raise dist.DistBackendError(_NOT_BOUND)
        kind = -1
        if self.reduces is not None and not self.functional:
            args[self.reduces], kind = reduction(args, self.reduces, tensors)
        if self.name in ("send", "recv_"):
            agreement.check_message(found, self.name.strip("_"), tensors[0], args[self.group + 1])
            args[self.group + 2] = 0  # NCCL knows no tags: messages come in the order in which they were sent
        elif self.name not in _BETWEEN_TWO and found.size > 1:
            root = args[self.root] if self.root is not None else -1
            dtype = tensors[0].dtype if tensors else None
            gives, takes = self._counts(args, found.size)
            agreement.check(found, agreement.Call(self.name, dtype, kind, root, ordinal, gives, takes))

    def _counts(self, args: list, size: int) -> tuple[list[int], list[int]]:
        """How many elements this rank gives to each rank, and takes from each."""
        if self.name in ("allgather_", "reduce_scatter_", "alltoall_"):
            outputs, inputs = ([one.numel() for one in leaves(value)] for value in args[:2])
            return _to_each(inputs, size), _to_each(outputs, size)
        if self.name in ("alltoall_base_", "all_to_all_single"):
            output, given = (args[0], args[1]) if self.name == "alltoall_base_" else (None, args[0])
            out_cuts, in_cuts = args[3:5] if output is not None else args[1:3]
            row = given.shape[1:].numel()  # of a rank that gives nothing, too
            return [k * row for k in in_cuts or [len(given) // size] * size], [
                k * row for k in out_cuts or [len(given if output is None else output) // size] * size
            ]
        side = 0 if self.functional or self.name in _REDUCES or self.name == "scatter_" else min(1, self.group - 1)
        count = sum(one.numel() for one in leaves(args[side]))
        return [count] * size, [count] * size


def _unboxed(group: Any) -> Any:
    return group if isinstance(group, dist.ProcessGroup) else dist.ProcessGroup.unbox(group)


def _to_each(counts: list[int], size: int) -> list[int]:
    return counts * size if len(counts) == 1 else counts


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a tensor or of lists of them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from leaves(one)


def _check(one: torch.Tensor, name: str) -> None:
    if one.layout is not torch.strided:
        if name == "allreduce_":
            raise RuntimeError(
                "NCCL does not support all_reduce with sparse tensors. Please use dense tensors instead."
            )
        raise ValueError("Tensors must be CUDA and dense")
    if name in _BETWEEN_TWO:
        if not _dense(one):
            raise ValueError("Tensors for P2P must be non-overlapping and dense")
    elif not one.is_contiguous(memory_format=suggest_memory_format(one)):
        raise ValueError("Tensors must be contiguous")
    if one.dtype in _NOT_SENT:
        name = errors.LEGACY_NAMES.get(one.dtype, str(one.dtype).removeprefix("torch."))
        raise TypeError(f"Input tensor data type is not supported for NCCL process group: {name}")


def _dense(one: torch.Tensor) -> bool:
    """True where the elements fill their memory in some order of the dimensions, without a gap and each once."""
    expected = 1
    for stride, size in sorted((t, n) for t, n in zip(one.stride(), one.shape, strict=True) if n != 1):
        if stride != expected and one.numel():
            return False
        expected *= size
    return True


def reduction(args: list, place: int, tensors: list[torch.Tensor]) -> tuple[Any, int]:
    """The reduction as gloo can do it, and its number. A factor is multiplied into the tensors at once."""
    if not hasattr(dist.ReduceOp, "unbox"):  # until torch 2.13 nobody can look into one that is boxed
        return args[place], -1
    kinds = dist.ReduceOp.RedOpType
    kind, factor = dist.ReduceOp.unbox(args[place]).__getstate__()
    of_bools = bool(tensors) and tensors[0].dtype is torch.bool
    if kind in (kinds.BAND, kinds.BOR, kinds.BXOR):
        raise ValueError(f"Cannot use ReduceOp.{kind.name} with NCCL")
    if kind == kinds.AVG and of_bools:
        raise TypeError("Cannot use ReduceOp.AVG with boolean inputs")
    if kind == kinds.SUM and of_bools:
        return dist.ReduceOp(kinds.MAX).boxed(), int(kind)
    if kind == kinds.PREMUL_SUM:
        _premultiply(args, place, factor)
        return dist.ReduceOp(kinds.SUM).boxed(), int(kind)
    return args[place], int(kind)


def _premultiply(args: list, place: int, factor: Any) -> None:
    factor = factor._host if tensor.is_virtual(factor) else factor
    if isinstance(args[1], (torch.Tensor, list)):  # outputs and inputs: the inputs stay as they are
        args[1] = tree_map(lambda one: one * factor, args[1])
    else:
        for one in leaves(args[0]):
            one.mul_(factor)


def _check_sizes(name: str, args: list, ranks: int) -> None:
    outputs, inputs = ([a] if isinstance(a, torch.Tensor) else a for a in args[:2])
    for output, given in zip(outputs, inputs, strict=True):
        if not (output.is_contiguous() and given.is_contiguous()):
            raise ValueError("Tensors must be contiguous")
        if name in _GATHERS and output.numel() != ranks * given.numel():
            raise ValueError("output tensor size must be equal to world_size times input tensor size")
        if name in _REDUCES and given.numel() != ranks * output.numel():
            raise ValueError("input tensor must be the same size as output size times world size")


def _row(value: Any) -> Any:
    """A tensor as one row of its memory, which is what gloo takes of any shape."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    return value.view(-1) if value.is_contiguous() else value.as_strided((value.numel(),), (1,))


def done(value: Any) -> Any:
    """A work that has ended."""
    future: torch.futures.Future = torch.futures.Future()
    future.set_result(value)
    return torch._C._distributed_c10d._create_work_from_future(future)


def remember(found: groups.Route, result: Any) -> None:
    """Keep the work of a collective between `_start_coalescing` and `_end_coalescing`, which ends with all of them."""
    if found.pending is not None:
        found.pending.append(work(result))


def work(result: Any) -> Any:
    """The work that is, or is the last of, what an operator gives."""
    return dist._Work.unbox(result[-1] if isinstance(result, tuple) else result)


def together(works: list) -> Any:
    """One work for all of `works`, which have ended where there are several."""
    if len(works) == 1:
        return works[0]
    for work in works:  # at once, for not every work of gloo's has a future that one could wait for later
        work.wait()
    return done([])


def placed(future: Any) -> Any:
    """The value of a future of gloo's, with the tensors where the caller's tensors lie."""
    return tree_map(_place, future.value())


def _place(value: Any) -> Any:
    if type(value) is not torch.Tensor:
        return value
    ordinal = memory.ordinal_of(value.untyped_storage())
    return value if ordinal is None else tensor.view(value, ordinal)
