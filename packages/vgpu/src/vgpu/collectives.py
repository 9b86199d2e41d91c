"""Collectives into one tensor: NCCL counts elements, gloo compares shapes; a group on GPUs goes by NCCL's rules."""

from __future__ import annotations

from typing import Any

import torch

_GATHERS = ("c10d::_allgather_base_", "c10d::allgather_into_tensor_coalesced_")
_REDUCES = ("c10d::_reduce_scatter_base_", "c10d::reduce_scatter_tensor_coalesced_")
INTO_ONE = frozenset((*_GATHERS, *_REDUCES))


def flat(name: str, args: list) -> list:
    """The arguments of such a collective with every tensor as one row, which is what gloo takes of any shape.

    Raises:
        ValueError: in the words of NCCL's process group, for tensors that it refuses.
    """
    outputs, inputs = ([a] if isinstance(a, torch.Tensor) else a for a in args[:2])
    ranks = torch.distributed.ProcessGroup.unbox(args[2]).size()
    for output, given in zip(outputs, inputs, strict=True):
        if not (output.is_contiguous() and given.is_contiguous()):
            raise ValueError("Tensors must be contiguous")
        if name in _GATHERS and output.numel() != ranks * given.numel():
            raise ValueError("output tensor size must be equal to world_size times input tensor size")
        if name in _REDUCES and given.numel() != ranks * output.numel():
            raise ValueError("input tensor must be the same size as output size times world size")
    return [_row(args[0]), _row(args[1]), *args[2:]]


def _row(value: Any) -> Any:
    return value.view(-1) if isinstance(value, torch.Tensor) else [one.view(-1) for one in value]
