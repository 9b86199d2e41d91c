"""What it takes to compute a call of an operator once more, on memory that is different by then."""

from __future__ import annotations

from typing import NamedTuple

import torch

_POISON = 0x7FFFFFFF  # as four bytes: NaN in every type of floats, and the largest int32
_set = torch._C.TensorBase.set_  # not that of `torch.Tensor`, which asks storages for their devices


class Layout(NamedTuple):
    """Which part of a storage a strided tensor has, and how it reads it."""

    dtype: torch.dtype
    offset: int
    shape: torch.Size
    stride: tuple[int, ...]
    is_conj: bool
    is_neg: bool


def layout(tensor: torch.Tensor) -> Layout:
    """The layout of a tensor."""
    return Layout(
        tensor.dtype, int(tensor.storage_offset()), tensor.shape, tensor.stride(), tensor.is_conj(), tensor.is_neg()
    )


def on(storage: torch.UntypedStorage, where: Layout) -> torch.Tensor:
    """A tensor of the CPU over a part of a storage."""
    made = torch.empty(0, dtype=where.dtype)
    _set(made, storage, where.offset, where.shape, where.stride)
    made = made.conj() if where.is_conj else made
    return torch._neg_view(made) if where.is_neg else made


def put(values: torch.Tensor, into: torch.Tensor) -> None:
    """Copy; what a tensor repeats, as after `expand`, is written once."""
    sizes = [1 if step == 0 else size for size, step in zip(into.shape, into.stride(), strict=True)]
    if sizes != list(into.shape):
        part = tuple(slice(size) for size in sizes)
        values, into = values[part], into[part]
    into.copy_(values)


def copy(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """The same bytes in memory of the CPU that nobody counts."""
    return torch.UntypedStorage(storage.nbytes()).copy_(storage)


def poison(storage: torch.UntypedStorage) -> None:
    """Fill memory with what nobody takes for a result."""
    if storage.nbytes():
        storage.fill_(0xFF)  # type: ignore[attr-defined]  # missing from PyTorch's declarations
        whole = storage.nbytes() // 4
        on(storage, Layout(torch.int32, 0, torch.Size((whole,)), (1,), False, False)).fill_(_POISON)
