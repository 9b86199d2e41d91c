"""Which bytes of a storage a tensor has, and whether two tensors have some in common."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Region(NamedTuple):
    """The elements of a strided tensor, by their places in its storage; `start` and `end` are in bytes."""

    start: int
    end: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


def region_of(tensor: torch.Tensor) -> Region:
    """The bytes of a tensor in its storage.

    Args:
        tensor: any strided tensor of the host.
    """
    itemsize, sizes, strides = tensor.element_size(), tuple(tensor.shape), tensor.stride()
    start = int(tensor.storage_offset()) * itemsize
    if 0 in sizes:
        return Region(start, start, sizes, strides, itemsize)
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return Region(start, start + (last + 1) * itemsize, sizes, strides, itemsize)


def whole(storage: torch.UntypedStorage) -> Region:
    """All bytes of a storage."""
    return Region(0, storage.nbytes(), (storage.nbytes(),), (1,), 1)


def overlap(one: Region, other: Region) -> bool:
    """Whether two regions of one storage have a byte in common; two columns of a matrix have none."""
    start, end = max(one.start, other.start), min(one.end, other.end)
    if start >= end:
        return False
    if _is_dense(one) and _is_dense(other):
        return True
    first = min(one.start, other.start)
    marked = torch.zeros(max(one.end, other.end) - first, dtype=torch.bool)
    _bytes(marked, one, first).fill_(True)
    return bool(_bytes(marked, other, first).any())


def _is_dense(region: Region) -> bool:
    elements = 1
    for size in region.sizes:
        elements *= size
    return elements * region.itemsize == region.end - region.start


def _bytes(marks: torch.Tensor, region: Region, first: int) -> torch.Tensor:
    """The marks of the bytes of a region."""
    sizes = (*region.sizes, region.itemsize)
    strides = (*(stride * region.itemsize for stride in region.strides), 1)
    return marks.as_strided(sizes, strides, region.start - first)
