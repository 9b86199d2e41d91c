"""Memory pools: the storages that a thread makes while it uses a `torch.cuda.MemPool` are that pool's in a snapshot.

They differ in nothing else here: all memory of a device is one, and what a pool has freed goes to everybody.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from typing import Any

import torch

from vgpu.base import errors

Pool = tuple[int, int]
DEFAULT: Pool = (0, 0)
_numbers = itertools.count(1)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.used: defaultdict[int, list[Pool]] = defaultdict(list)


_thread = _Thread()
_users: defaultdict[Pool, int] = defaultdict(int)  # blocks that use a pool now, of all threads


class MemPool:
    """In the place of `torch.cuda.MemPool`."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False, **_: Any) -> None:
        if allocator is not None:
            raise errors.not_simulated("memory pools with an allocator of their own")
        self.allocator, self.id = None, of_program()

    def use_count(self) -> int:
        """How many hold the pool: this object, and the blocks that use it."""
        return 1 + _users[self.id]

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The segments of the pool."""
        return torch.cuda.memory_snapshot(self.id, include_traces=include_traces)


def of_program() -> Pool:
    """A new pool that a program has asked for."""
    return 0, next(_numbers)


def of_graph() -> Pool:
    """A new pool of a CUDA graph that was given none."""
    return next(_numbers), 0


def begin(ordinal: int, pool: Pool) -> None:
    """Let this thread's storages on a device be those of a pool."""
    _thread.used[ordinal].append(pool)
    _users[pool] += 1


def end(ordinal: int, pool: Pool) -> None:
    """Let the storages be again what they were before; the GPUs may be gone, and the pool forgotten with them."""
    if _thread.used[ordinal]:
        _thread.used[ordinal].pop()
        _users[pool] -= 1


def current(ordinal: int) -> Pool:
    """The pool that this thread uses on a device."""
    used = _thread.used[ordinal]
    return used[-1] if used else DEFAULT


def are_used() -> bool:
    """True while any thread uses a pool."""
    return any(_users.values())


def forget() -> None:
    """Let nobody use a pool: what began to use one, such as a capture that was given up, may never have ended."""
    global _thread
    _thread = _Thread()
    _users.clear()
