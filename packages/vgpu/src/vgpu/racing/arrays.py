"""What a program writes through an array of NumPy over pinned memory: no operator tells it, so the bytes are compared.

A copy with `non_blocking=True` is computed at once here. From then until the host has waited for it, the memory that it
has read or written must not change by anything but an operator that is seen.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator

import torch
from torch.utils._python_dispatch import _disable_current_modes

from vgpu.operators import again
from vgpu.racing.accesses import Access
from vgpu.racing.clocks import HOST, Clocks
from vgpu.racing.regions import overlap, region_of


@dataclasses.dataclass(eq=False)
class _Used:
    """Memory of the host as a stream has left it."""

    access: Access
    storage: weakref.ref[torch.UntypedStorage]
    layout: again.Layout
    values: torch.Tensor

    def has_changed(self) -> bool:
        storage = self.storage()
        if storage is None:
            return False
        with _disable_current_modes():  # which would tell the detector that the host reads it
            both = self.values, again.on(storage, self.layout)
            mine, now = (one.contiguous().view(-1).view(torch.uint8) for one in both)  # NaN is equal to NaN
            return not torch.equal(mine, now)


class Arrays:
    """The memory that arrays share with pinned tensors, and what streams may still do there."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._shared: weakref.WeakValueDictionary[int, torch.UntypedStorage] = weakref.WeakValueDictionary()
        self._used: list[_Used] = []

    def share(self, storage: torch.UntypedStorage) -> None:
        """The program has an array over this memory from now on."""
        self._shared[storage._cdata] = storage

    def written(self, tensor: torch.Tensor) -> None:
        """An operator has written a tensor of the host, or is about to where the host computes."""
        storage, region = tensor.untyped_storage(), region_of(tensor)
        self._used = [
            one for one in self._used if one.storage() is not storage or not overlap(one.access.region, region)
        ]

    def used(self, tensor: torch.Tensor, access: Access) -> None:
        """A stream uses a tensor of the host from now on, until it is waited for."""
        storage = tensor.untyped_storage()
        if self._shared.get(storage._cdata) is storage:
            layout = again.layout(tensor)._replace(is_conj=False, is_neg=False)
            with _disable_current_modes():
                values = again.on(storage, layout).clone()
            self._used.append(_Used(access, weakref.ref(storage), layout, values))

    def changed(self) -> Iterator[Access]:
        """The uses of memory that is different now although the host has not waited for them."""
        waits = [one for one in self._used if not self._clocks.knows(HOST, one.access.actor, one.access.step)]
        found = [one for one in waits if one.has_changed()]
        self._used = [one for one in waits if one not in found]
        yield from (one.access for one in found)
