"""How many bytes of tensors are alive at the worst moment of a piece of code."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryMeter(TorchDispatchMode):
    """Inside `with MemoryMeter() as meter:`, the bytes of tensors made there: alive at worst, and alive now.

    Counts every storage that an operation returns, forward and backward (on the CPU, where backward runs in the same
    thread), until it is freed; not the scratch memory inside a kernel. Tensors made before do not count, so a view
    of an input costs nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._before: set[int] = set()
        self.peak = 0

    @property
    def alive(self) -> int:
        """Bytes of the counted storages that are alive at this moment."""
        self._alive = {key: entry for key, entry in self._alive.items() if not entry[0].expired()}
        return sum(size for _, size in self._alive.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = {_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        self._before |= given - self._alive.keys()
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and _key(leaf) not in given:
                storage = leaf.untyped_storage()
                self._alive[_key(leaf)] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.alive)
        return out


def _key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def peak_bytes(call: Callable[[], Any]) -> int:
    """Bytes alive at the worst moment of `call()`, of the tensors it makes itself."""
    with MemoryMeter() as meter:
        call()
    return meter.peak
