"""What the bytes on a GPU are for: weights, gradients, optimizer state, batch, outputs, and the rest.

PyTorch's allocator counts bytes and does not know what they are for. Whoever holds a tensor can say it, so a `Ledger`
is told, and forgets a tensor by itself when its memory is freed.
"""

import gc
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

KINDS = ("weights", "gradients", "optimizer", "batch", "outputs", "activations")
NAMED, REST = KINDS[:-1], KINDS[-1]
BLOCK = 512  # the allocator gives out whole blocks of so many bytes


def in_blocks(nbytes: int) -> int:
    """Bytes that the allocator counts for a tensor of `nbytes`."""
    return -(-nbytes // BLOCK) * BLOCK


def settled(wait: float = 0.05, waits: int = 4) -> int:
    """Bytes that the current GPU holds, once they have stayed the same for `waits` times `wait` seconds.

    A collective holds its tensors until its own thread has let go of them, and a cycle of Python's until it is found.
    On a busy machine that thread may have to wait for a core, so one equal reading is not enough.
    """
    gc.collect()
    now, left = torch.cuda.memory_allocated(), waits
    while left:
        time.sleep(wait)
        before, now = now, torch.cuda.memory_allocated()
        left -= 1
        if now != before:
            gc.collect()  # what has gone may have been the last that held a cycle
            left = waits
    return now


class Ledger:
    """Memory by kind. A memory that several tensors share counts once, for the kind that it was given first.

        ledger = Ledger()
        ledger.name("weights", net.parameters())
        ledger.split(torch.cuda.memory_allocated(0), torch.device("cuda:0"))

    Nothing is kept alive: the ledger holds weak references to the memory (the storage) of the tensors.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[torch.device, int], tuple[str, int, StorageWeakRef]] = {}

    def name(self, kind: str, tensors: Any) -> None:
        """`tensors`, in containers of any depth, are of this kind. What is not a tensor on a GPU is passed over.

        Raises ValueError for a kind that is not in `NAMED`.
        """
        if kind not in NAMED:
            raise ValueError(f"`kind` must be one of {', '.join(NAMED)}, got {kind!r}; {REST} are the rest")
        for tensor in tree_leaves(list(tensors) if isinstance(tensors, Iterator) else tensors):
            if isinstance(tensor, Tensor) and tensor.device.type != "cpu":
                storage = tensor.untyped_storage()
                place = (tensor.device, storage.data_ptr())
                if place not in self._entries or self._entries[place][2].expired():
                    self._entries[place] = (kind, in_blocks(storage.nbytes()), StorageWeakRef(storage))

    def split(self, held: int, device: torch.device) -> dict[str, int]:
        """`held` bytes of `device` by kind, in the order of `KINDS`: "activations" is what no name was given to.

        These are the tensors that autograd keeps for backward and, while forward or backward run, what a layer is
        working on, such as the gradients of activations.
        """
        self._entries = {place: entry for place, entry in self._entries.items() if not entry[2].expired()}
        found = dict.fromkeys(KINDS, 0)
        for (where, _), (kind, nbytes, _) in self._entries.items():
            if where == device:
                found[kind] += nbytes
        found[REST] = held - sum(found.values())
        return found
