"""The C++ half of `torch.nn.parallel.comm`: copies between GPUs, which bypass the dispatcher on real hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from vgpu.base.builds import WITH_CUDA
from vgpu.base.patches import Patches
from vgpu.machine import contexts, devices, waiting
from vgpu.tensors.tensor import is_virtual, wrap


def install(patches: Patches) -> None:
    """Replace `torch._C._scatter`, `_gather`, `_broadcast`, `_broadcast_coalesced` and their `_out` forms."""
    functions = (scatter, scatter_out, gather, gather_out, broadcast, broadcast_out, broadcast_coalesced)
    # A build without CUDA has none of these functions; one with CUDA must have them all.
    patches.functions(torch._C, "_", *functions, may_be_missing=not WITH_CUDA)
    for flat in (torch._C._nn.flatten_dense_tensors, torch._C._nn.unflatten_dense_tensors):  # type: ignore[attr-defined]
        patches.set(torch._C._nn, flat.__name__, _on_host(flat))
    # torch.nn.parallel keeps one copy stream per device in a list as long as the first machine it saw.
    patches.set(torch.nn.parallel._functions, "_streams", None)


def scatter(
    tensor: Tensor, ordinals: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any = None
) -> tuple[Tensor, ...]:
    """Split along `dim` and put chunk i on device `ordinals[i]`; a chunk that is there already stays a view."""
    _require(ordinals, "Expected at least one device to scatter to")
    if chunk_sizes is None:
        chunks = tensor.chunk(len(ordinals), dim)
    else:
        _require(
            len(chunk_sizes) == len(ordinals),
            "Expected devices and chunk_sizes to be of same length, but got "
            f"len(devices) = {len(ordinals)} and len(chunk_sizes) = {len(chunk_sizes)}",
        )
        chunks = tensor.split_with_sizes(chunk_sizes, dim)
    return tuple(_sent(c, k) for c, k in zip(chunks, ordinals, strict=False))


def _sent(tensor: Tensor, ordinal: int) -> Tensor:
    """The tensor on a device, which nobody waits for."""
    return tensor.to(devices.PUBLIC[devices.check(ordinal)], non_blocking=True)


def scatter_out(tensor: Tensor, out: Sequence[Tensor], dim: int, streams: Any = None) -> tuple[Tensor, ...]:
    """Split `tensor` along `dim` into the given tensors."""
    _require(out, "Expected at least one output tensor to scatter to")
    dim = dim % max(tensor.dim(), 1)
    for i, target in enumerate(out):
        _require_gpu(target, i, "output")
        found, whole = list(target.shape), list(tensor.shape)
        _require(
            [*found[:dim], whole[dim], *found[dim + 1 :]] == whole,
            f"Output tensor at index {i} has incorrect shape: {found}. Expected same shape except for scatter dim "
            f"{dim} as the source tensor: {whole}",
        )
    rows = [t.size(dim) for t in out]
    _require(
        sum(rows) == tensor.size(dim),
        f"Total size for output tensors along scatter dim {dim} does not match the source tensor size at dim {dim}. "
        f"Expected {tensor.size(dim)}, but got total size {sum(rows)}",
    )
    for part, target in zip(tensor.split_with_sizes(rows, dim), out, strict=True):
        target.copy_(part, non_blocking=True)
    return tuple(out)


def gather(tensors: Sequence[Tensor], dim: int, destination: int | None) -> Tensor:
    """Concatenate along `dim` on device `destination`: -1 is the CPU, None the current device."""
    shape = _joined_shape(tensors, dim)
    ordinal = devices.current() if destination is None else destination
    target = devices.CPU if ordinal == -1 else devices.PUBLIC[devices.check(ordinal)]
    if _unobserved(tensors) and len({t.dtype for t in tensors}) == 1:
        if contexts.watched and ordinal == -1:
            for tensor in tensors:
                waiting.wait(tensor._ordinal)  # type: ignore[attr-defined]
        joined = torch.cat([t._host for t in tensors], dim)  # type: ignore[attr-defined]
        return joined if ordinal == -1 else wrap(joined, ordinal)
    formats = {suggest_memory_format(t) for t in tensors}
    order = formats.pop() if len(formats) == 1 else torch.contiguous_format
    # Copied part by part into one new tensor, as CUDA does: no part lies on the target twice.
    return gather_out(tensors, torch.empty(shape, dtype=tensors[0].dtype, device=target, memory_format=order), dim)


def gather_out(tensors: Sequence[Tensor], out: Tensor, dim: int) -> Tensor:
    """Concatenate along `dim` into `out`."""
    shape = _joined_shape(tensors, dim)
    _require(list(out.shape) == shape, f"Expected out tensor to have shape {shape}, but got {list(out.shape)}")
    for part, target in zip(tensors, out.split_with_sizes([t.size(dim) for t in tensors], dim), strict=True):
        target.copy_(part, non_blocking=target.is_cuda)
    return out


def _joined_shape(tensors: Sequence[Tensor], dim: int) -> list[int]:
    """The shape of the tensors put together along `dim`, after the checks of CUDA's gather."""
    _require(tensors, "Expected at least one tensor to gather from")
    shape = list(tensors[0].shape)
    for i, tensor in enumerate(tensors):
        _require_gpu(tensor, i, "input")
        _require(
            tensor.dim() == len(shape),
            "Expected all input tensors to have the same number of dimensions, "
            f"but tensor at index {i} has {tensor.dim()} dimensions, (expected {len(shape)})",
        )
        shape[dim] = tensor.size(dim)
        found = list(tensor.shape)
        _require(found == shape, f"Input tensor at index {i} has invalid shape {found}, but expected {shape}")
    shape[dim] = sum(t.size(dim) for t in tensors)
    return shape


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


def _require_gpu(tensor: Tensor, i: int, role: str) -> None:
    text = f"{'output tensor' if role == 'output' else 'tensor'} at index {i} has device '{tensor.device}'"
    _require(tensor.is_cuda, f"Expected all {role} tensors to be CUDA tensors, but {text}")


def broadcast(tensor: Tensor, ordinals: Sequence[int]) -> tuple[Tensor, ...]:
    """One copy on each device; where the tensor lies already, the tensor itself."""
    _require(ordinals, "Expected at least one device to broadcast to")
    return tuple(_sent(tensor, k) for k in ordinals)


def broadcast_out(tensor: Tensor, out: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Copy `tensor` into each of the given tensors."""
    for i, target in enumerate(out):
        _require_gpu(target, i, "output")
        _require(
            target.shape == tensor.shape,
            f"Expected all output tensors to have same shape as the source tensor {list(tensor.shape)}, "
            f"but output tensor at index {i} has shape {list(target.shape)}",
        )
        target.copy_(tensor, non_blocking=True)
    return tuple(out)


def broadcast_coalesced(tensors: Sequence[Any], ordinals: Sequence[int], buffer_size: int) -> list[list[Any]]:
    """For each device, all tensors. The first device must hold them already and gets the tensors themselves."""
    home = devices.PUBLIC[devices.check(ordinals[0])]
    _require(all(t.device == home for t in tensors), f"All tensors must be on devices[0]: {ordinals[0]}")
    copies = [[wrap(t._host.clone(), devices.check(k)) for t in tensors] for k in ordinals[1:]]
    return [list(tensors), *copies]


def _unobserved(tensors: Sequence[Any]) -> bool:
    """True where one call on the hosts does for all: all are virtual, and neither autograd nor a mode looks."""
    return all(map(is_virtual, tensors)) and not (torch.is_grad_enabled() or torch._C._len_torch_dispatch_stack())


def _on_host(flat: Callable) -> Callable:
    """`flat(tensors)` or `flat(one, tensors)` at one go: as operators it is a view of each parameter."""

    def on_host(*args: Any) -> Any:
        tensors = [*args[:-1], *args[-1]]
        if not _unobserved(tensors) or len({t._ordinal for t in tensors}) != 1:
            return flat(*args)
        ordinal = tensors[0]._ordinal
        found = flat(*(t._host for t in args[:-1]), [t._host for t in args[-1]])
        if isinstance(found, Tensor):
            return wrap(found, ordinal)
        return tuple(wrap(host, ordinal) for host in found)

    return on_host
