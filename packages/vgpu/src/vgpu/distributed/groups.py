"""Process groups over virtual GPUs: by which gloo group the tensors of a group that asked for NCCL travel.

Such a group has a backend for CUDA only, as on real GPUs, so PyTorch itself refuses CPU tensors in it. The hosts of
virtual tensors are CPU tensors and need a group that takes those: a second one over the same backend, known only here.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import weakref
from collections.abc import MutableMapping
from typing import Any

import torch

_c10d: Any = getattr(torch._C, "_distributed_c10d", None)  # builds without torch.distributed lack it
_CUDA, _CPU = torch.device("cuda"), torch.device("cpu")
_numbers = itertools.count()


class Route:
    """How virtual tensors travel in one process group."""

    def __init__(self, group: Any) -> None:
        kinds = {device.type for device in group._device_types}
        self.backend: Any = group._get_backend(_CUDA) if "cuda" in kinds else None
        #: True where the rules of NCCL hold: CUDA has a backend of its own.
        self.nccl = self.backend is not None and not ("cpu" in kinds and group._get_backend(_CPU) is self.backend)
        self.rank, self.size = group.rank(), group.size()
        #: The only device that communicates, where `init_process_group` was told one.
        self.bound: torch.device | None = group.bound_device_id
        #: The works of what was called since `_start_coalescing`, None outside of it.
        self.pending: list[Any] | None = None
        #: The GPUs, rank by rank, that have communicated in this group: as many communicators NCCL would have.
        self.communicators: list[tuple[int, ...]] = []
        #: Where the two ranks of a message compare it, and how many went from one to the other.
        self.store, self.messages = group.get_group_store(), collections.Counter[tuple[int, int]]()
        # Weakly: a group that lived until the interpreter's end would leave gloo's threads running, which aborts it.
        self._asked, self._over, self.name = weakref.ref(group), None, group.group_name
        if self.nccl:
            self._over = _over(self.backend, group)
            self.name = f"{group.group_name}/virtual/{next(_numbers)}"
            _c10d._register_process_group(self.name, self._over)
            weakref.finalize(group, _forget, self.name)

    @property
    def group(self) -> Any:
        """The group by which the hosts travel: that of the caller, or the one over the same backend."""
        return self._asked() if self._over is None else self._over


def _over(backend: Any, group: Any) -> Any:
    """A group of the same ranks that takes CPU tensors to `backend`."""
    kind = torch.distributed.ProcessGroup
    made = kind(torch.distributed.HashStore(), group.rank(), group.size())
    made._set_default_backend(kind.BackendType.GLOO)
    made._register_backend(_CPU, kind.BackendType.GLOO, backend)
    return made


def _forget(name: str) -> None:
    with contextlib.suppress(RuntimeError):  # destroy_process_group may have forgotten all groups before
        _c10d._unregister_process_group(name)


_routes: MutableMapping[Any, Route] = weakref.WeakKeyDictionary()


def route(group: Any) -> Route:
    """The route of a process group, made at its first use: groups come from Python, from C++ and from splits."""
    found = _routes.get(group)
    if found is None:
        found = _routes[group] = Route(group)
    return found


def named(name: str) -> Route:
    """The route of the process group that functional collectives know by this name."""
    return route(_c10d._resolve_process_group(name))
