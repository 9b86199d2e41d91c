"""The one list of everything replaced in PyTorch while virtual GPUs are on, so that all of it can be put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """Replaced attributes with their originals."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`. An attribute that was inherited or missing is deleted again by `restore`."""
        self._originals.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def functions(self, owner: Any, prefix: str, *functions: Callable) -> None:
        """Replace `owner.<prefix><name>` by each function, under the function's own name."""
        for function in functions:
            self.set(owner, prefix + function.__name__, function)

    def on_restore(self, undo: Callable[[], None]) -> None:
        """Call `undo` when everything is put back: for what is no attribute, as kernels of the dispatcher."""
        self._undo.append(undo)

    def forget(self, cached: Any) -> None:
        """Clear a cache of PyTorch's that may hold what is replaced, now and when everything is put back."""
        cached.cache_clear()
        self.on_restore(cached.cache_clear)

    def restore(self) -> None:
        """Put every original back, last replaced first."""
        while self._undo:
            self._undo.pop()()
        while self._originals:
            owner, name, value = self._originals.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
