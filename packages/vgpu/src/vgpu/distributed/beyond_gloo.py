"""What NCCL does and gloo does not: tensors of several sizes, means of integers, float8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from vgpu.distributed import collectives, groups

dist: Any = torch.distributed  # PyTorch declares little of what is used of it here

# A sum of them is made in float32, and rounded once.
_OF_ONE_BYTE = frozenset((torch.float8_e4m3fn, torch.float8_e5m2))


def run(func: Any, collective: collectives.Collective, args: list, kwargs: dict, found: groups.Route) -> Any:
    """The result of a collective on host tensors, by gloo's own operator or by what has the same effect."""
    result = None
    if found.nccl:
        result = _of_one_byte(func, collective, args, kwargs, found)
        if result is None:
            result = _uneven(collective, args, found)
        if result is None:
            result = _mean_of_integers(func, collective, args, found)
    return func(*args, **kwargs) if result is None else result


def _uneven(collective: collectives.Collective, args: list, found: groups.Route) -> Any:
    """A collective whose tensors have several sizes, which NCCL allows and gloo does not; None for all others."""
    if collective.name == "allgather_":
        (outputs,), (given,) = args[0], args[1]
        sizes = {one.numel() for one in outputs}
        if len(sizes) > 1:
            return _gathered_one_by_one(args, found)
        return _gathered_alone(args) if sizes != {given.numel()} and found.size == 1 else None
    if collective.name == "alltoall_" and len({one.numel() for one in (*args[0], *args[1])}) > 1:
        return _exchanged_in_one(args, found)
    return None


def _gathered_alone(args: list) -> Any:
    """`all_gather` of one rank: NCCL copies as many elements as are given, and does not look at the output's size."""
    ((output,),), (given,) = args[0], args[1]
    if given.numel() > output.numel():
        raise RuntimeError(
            f"simulated only: all_gather of {given.numel()} elements into a tensor of {output.numel()}. On GPUs NCCL "
            "would write beyond the end of it."
        )
    output[: given.numel()].copy_(given)
    return args[0], collectives.done([output]).boxed()


def _exchanged_in_one(args: list, found: groups.Route) -> Any:
    """`all_to_all` by gloo's operator for parts of one tensor, which may have several sizes."""
    outputs, inputs = args[0], args[1]
    counts = [[one.numel() for one in side] for side in (outputs, inputs)]
    whole = inputs[0].new_empty(sum(counts[0]))
    found.backend.alltoall_base(whole, torch.cat(inputs), *counts, dist.AllToAllOptions()).wait()
    for output, part in zip(outputs, whole.split(counts[0]), strict=True):
        output.copy_(part)
    return outputs, collectives.done(outputs).boxed()


def _gathered_one_by_one(args: list, found: groups.Route) -> Any:
    """`all_gather` by one broadcast from each rank, as in NCCL."""
    (outputs,), (given,) = args[0], args[1]
    outputs[found.rank].copy_(given)
    for root, one in enumerate(outputs):
        options = dist.BroadcastOptions()
        options.rootRank = root
        found.backend.broadcast([one], options).wait()
    return args[0], collectives.done(outputs).boxed()


def _mean_of_integers(func: Any, collective: collectives.Collective, args: list, found: groups.Route) -> Any:
    """A reduction by AVG of integers, which gloo refuses and NCCL divides towards zero; None for all others."""
    tensors = list(collectives.leaves(args[: collective.group]))
    if collective.functional or collective.reduces is None or not tensors:
        return None
    exact = not (tensors[0].is_floating_point() or tensors[0].is_complex())
    if not exact or collectives.reduction(args, collective.reduces, tensors)[1] != int(dist.ReduceOp.RedOpType.AVG):
        return None
    args[collective.reduces] = dist.ReduceOp(dist.ReduceOp.RedOpType.SUM).boxed()
    result = func(*args)
    collectives.work(result).wait()
    if collective.root is None or args[collective.root] == found.rank:
        for one in collectives.leaves(args[0]):
            one.div_(found.size, rounding_mode="trunc")
    # Gloo's own work would write the sum once more when it is waited for.
    done = collectives.done(list(collectives.leaves(args[0]))).boxed()
    return (*result[:-1], done) if isinstance(result, tuple) else done


def _of_one_byte(func: Any, collective: collectives.Collective, args: list, kwargs: dict, found: groups.Route) -> Any:
    """A collective over float8: sent as bytes, or reduced in float32; None for all others."""
    tensors = list(collectives.leaves(args[: collective.group]))
    if not tensors or tensors[0].dtype not in _OF_ONE_BYTE:
        return None
    dtype = tensors[0].dtype
    if collective.reduces is None:
        as_bytes = _each(lambda one: one.view(torch.uint8), args[: collective.group])
        result = run(func, collective, [*as_bytes, *args[collective.group :]], kwargs, found)
        return _each(lambda one: _waited(one).view(dtype), result) if collective.functional else result
    wide = _each(lambda one: one.float(), args[: collective.group])
    result = func(*wide, *args[collective.group :], **kwargs)
    if collective.functional:
        return _each(lambda one: _waited(one).to(dtype), result)
    collectives.work(result).wait()
    if collective.root is None or args[collective.root] == found.rank:
        for narrow, one in zip(collectives.leaves(args[0]), collectives.leaves(wide[0]), strict=True):
            narrow.copy_(one)
    done = collectives.done(list(collectives.leaves(args[0]))).boxed()
    return (*result[:-1], done) if isinstance(result, tuple) else done


def _each(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    return tree_map_only(torch.Tensor, function, value)


def _waited(one: torch.Tensor) -> torch.Tensor:
    return torch.ops._c10d_functional.wait_tensor(one)
