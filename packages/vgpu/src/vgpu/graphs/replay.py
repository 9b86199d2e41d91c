"""A graph after its capture: the recorded calls, which a replay computes in their order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from torch.utils._python_dispatch import _disable_current_modes

from vgpu.base.patches import Patches
from vgpu.graphs.blocks import Made
from vgpu.graphs.calls import Call, Reserved
from vgpu.machine import memory, rng


class _Thread(threading.local):
    replays = False  # memory that is made now belongs to a graph, and no tensor of the program holds it


_thread = _Thread()
_lock = threading.Lock()
_replaying: list[int] = []  # threads
_patches = Patches()


class Recorded:
    """What a graph holds after its capture."""

    def __init__(self, calls: list[Call | Reserved], generators: list[rng.VirtualGenerator]) -> None:
        self._calls, self._generators = calls, generators  # which a program may have dropped
        self._blocks = {block for call in calls for block in call.blocks() if isinstance(block, Made)}

    def is_empty(self) -> bool:
        """Whether nothing is computed."""
        return all(isinstance(call, Reserved) and call.values is None for call in self._calls)

    def replay(self) -> None:
        """Compute all calls, and let the program see the results."""
        for block in self._blocks:
            block.take()
        with _uncounted(), _disable_current_modes():
            for call in self._calls:
                call.repeat()
                for block in call.last:
                    block.values = None
        for block in self._blocks:
            block.is_seen = True
            block.show()


@contextlib.contextmanager
def _uncounted() -> Iterator[None]:
    """What this thread makes in the block is memory of a graph, which no tensor of the program holds."""
    with _lock:
        if not _replaying:
            track = memory.track
            _patches.set(memory, "track", lambda *args: None if _thread.replays else track(*args))
        _replaying.append(threading.get_ident())
    _thread.replays = True
    try:
        yield
    finally:
        _thread.replays = False
        with _lock:
            _replaying.remove(threading.get_ident())
            if not _replaying:
                _patches.restore()
