"""The memory that captured calls read and write, as a replay finds it again.

A program holds tensors. A graph holds blocks: of what was there before the capture only the address, so that a replay
uses whatever the program has put there, and of what the capture made the values, too, because the memory of a GPU's
graph outlives the tensors over it.
"""

from __future__ import annotations

import threading
import weakref

import torch

from vgpu.operators import again


class Block:
    """A storage that a captured call uses.

    Attributes:
        storage: a reference to the storage that tensors of the program have; None when it is gone.
        nbytes: its size.
    """

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.storage, self.nbytes = weakref.ref(storage), storage.nbytes()

    def bytes(self) -> torch.UntypedStorage:
        """Where a replay reads and writes.

        Raises:
            RuntimeError: if the program has freed it.
        """
        storage = self.storage()
        if storage is None:
            raise RuntimeError(
                f"this CUDA graph uses {self.nbytes} bytes that the program has freed since the capture: keep the "
                "tensors that a graph reads, and copy new values into them. Simulated only: a GPU would compute with "
                "what is in that memory by then"
            )
        return storage


class Made(Block):
    """A storage that a capture made.

    Attributes:
        values: what graphs have computed there; None before the capture ends, and where no later call needs it.
        is_seen: whether the program sees the values. On a GPU they are not computed before the first replay.
        thread: which thread has captured it. Another one may replay while this one captures.
    """

    def __init__(self, storage: torch.UntypedStorage) -> None:
        super().__init__(storage)
        self.values: torch.UntypedStorage | None = None
        self.is_seen, self.thread = True, threading.get_ident()

    def bytes(self) -> torch.UntypedStorage:
        """Where a replay reads and writes: memory of the graph's own."""
        if self.values is None:
            self.values = torch.UntypedStorage(self.nbytes)
        return self.values

    def hide(self) -> None:
        """Let the program see that nothing was computed, and keep what the capture has computed for later captures."""
        storage = self.storage()
        if storage is not None:
            if self.is_seen:
                self.values, self.is_seen = again.copy(storage), False
            again.poison(storage)

    def show(self) -> None:
        """Let the program see what graphs have computed."""
        storage = self.storage()
        if storage is not None and self.values is not None:
            storage.copy_(self.values)

    def take(self) -> None:
        """Compute with what the program has written since the last replay."""
        storage = self.storage()
        if storage is not None and self.is_seen and self.values is not None:
            self.values.copy_(storage)


_made: weakref.WeakValueDictionary[int, Made] = weakref.WeakValueDictionary()  # by the identity of the storage


def make(storage: torch.UntypedStorage) -> Made:
    """The block of a storage that a capture makes now, or has made and resizes."""
    block = made(storage)
    if block is None:
        block = _made[storage._cdata] = Made(storage)
    block.nbytes = storage.nbytes()
    return block


def made(storage: torch.UntypedStorage) -> Made | None:
    """The block of a storage that some capture made, or None."""
    block = _made.get(storage._cdata)
    return block if block is not None and block.storage() is storage else None


def hidden() -> list[Made]:
    """The blocks of this thread's captures that were not replayed yet."""
    here = threading.get_ident()
    return [block for block in list(_made.values()) if not block.is_seen and block.thread == here]
