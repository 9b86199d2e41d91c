"""The C++ half of `torch.nn.parallel.comm`: copies between GPUs, which bypass the dispatcher on real hardware."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.vgpu import devices
from frcnn_lite.vgpu.patches import Patches


def install(patches: Patches) -> None:
    """Replace `torch._C._scatter`, `_gather`, `_broadcast`, `_broadcast_coalesced` and their `_out` forms."""
    functions = (scatter, scatter_out, gather, gather_out, broadcast, broadcast_out, broadcast_coalesced)
    patches.functions(torch._C, "_", *functions)
    # torch.nn.parallel keeps one copy stream per device in a list as long as the first machine it saw.
    patches.set(torch.nn.parallel._functions, "_streams", None)


def scatter(
    tensor: Tensor, ordinals: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any = None
) -> tuple[Tensor, ...]:
    """Split along `dim` and put chunk i on device `ordinals[i]`; a chunk that is there already stays a view."""
    if not ordinals:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        chunks = tensor.chunk(len(ordinals), dim)
    else:
        if sum(chunk_sizes) != tensor.size(dim):
            raise RuntimeError(
                f"given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == {sum(chunk_sizes)}, "
                f"but expected {tensor.size(dim)})"
            )
        chunks = tensor.split_with_sizes(list(chunk_sizes), dim)
    return tuple(c.to(devices.PUBLIC[devices.check(k)]) for c, k in zip(chunks, ordinals, strict=False))


def scatter_out(tensor: Tensor, out: Sequence[Tensor], dim: int, streams: Any = None) -> tuple[Tensor, ...]:
    """Split `tensor` along `dim` into the given tensors."""
    for part, target in zip(tensor.split_with_sizes([t.size(dim) for t in out], dim), out, strict=True):
        target.copy_(part)
    return tuple(out)


def gather(tensors: Sequence[Tensor], dim: int, destination: int | None) -> Tensor:
    """Concatenate along `dim` on device `destination`: -1 is the CPU, None the current device."""
    _check_gather(tensors, dim)
    ordinal = devices.current() if destination is None else destination
    target = devices.CPU if ordinal == -1 else devices.PUBLIC[devices.check(ordinal)]
    size, first = list(tensors[0].shape), tensors[0]
    size[dim] = sum(t.size(dim) for t in tensors)
    # Copied part by part into one new tensor, as CUDA does: no part lies on the target twice.
    return gather_out(tensors, torch.empty(size, dtype=first.dtype, device=target), dim)


def gather_out(tensors: Sequence[Tensor], out: Tensor, dim: int) -> Tensor:
    """Concatenate along `dim` into `out`."""
    _check_gather(tensors, dim)
    for part, target in zip(tensors, out.split_with_sizes([t.size(dim) for t in tensors], dim), strict=True):
        target.copy_(part)
    return out


def _check_gather(tensors: Sequence[Tensor], dim: int) -> None:
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    first = tensors[0]
    for i, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {i} has device '{tensor.device}'"
            )
        if tensor.dim() != first.dim():
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, but tensor at index "
                f"{i} has {tensor.dim()} dimensions, (expected {first.dim()})"
            )
        expected = list(first.shape)
        if expected:
            expected[dim] = tensor.size(dim)
        if list(tensor.shape) != expected:
            raise RuntimeError(
                f"Input tensor at index {i} has invalid shape {list(tensor.shape)}, but expected {expected}"
            )


def broadcast(tensor: Tensor, ordinals: Sequence[int]) -> tuple[Tensor, ...]:
    """One copy on each device; where the tensor lies already, the tensor itself."""
    if not ordinals:
        raise RuntimeError("Expected at least one device to broadcast to")
    return tuple(tensor.to(devices.PUBLIC[devices.check(k)]) for k in ordinals)


def broadcast_out(tensor: Tensor, out: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Copy `tensor` into each of the given tensors."""
    for i, target in enumerate(out):
        if not target.is_cuda:
            raise RuntimeError(f"Expected all output tensors to be CUDA tensors, but output tensor at index {i} is not")
        if target.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have same shape as the source tensor {list(tensor.shape)}, "
                f"but output tensor at index {i} has shape {list(target.shape)}"
            )
        target.copy_(tensor)
    return tuple(out)


def broadcast_coalesced(tensors: Sequence[Tensor], ordinals: Sequence[int], buffer_size: int) -> list[list[Tensor]]:
    """For each device, all tensors. The first device must hold them already and gets the tensors themselves."""
    home = devices.PUBLIC[devices.check(ordinals[0])]
    if any(t.device != home for t in tensors):
        raise RuntimeError(f"All tensors must be on devices[0]: {ordinals[0]}")
    rest = [[t.to(devices.PUBLIC[devices.check(k)], copy=True) for t in tensors] for k in ordinals[1:]]
    return [list(tensors), *rest]
