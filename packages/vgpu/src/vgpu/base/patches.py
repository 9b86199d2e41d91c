"""The one list of everything replaced in PyTorch while virtual GPUs are on, so that all of it can be put back."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from vgpu.base import imports

_ABSENT = object()


class Patches:
    """Replaced attributes with their originals, and the kernels that stand in the dispatcher."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        self._undo: list[Callable[[], None]] = []
        self._library: torch.library.Library | None = None

    def set(self, owner: Any, name: str, value: Any, *, may_be_missing: bool = False) -> None:
        """Replace `owner.name`. An attribute that was inherited or missing is deleted again by `restore`.

        Args:
            owner: a module, a class or an object.
            name: an attribute that `owner` has, itself or by inheritance.
            value: what stands in its place until `restore`.
            may_be_missing: True for the names that some builds or versions of PyTorch do not have.

        Raises:
            AttributeError: if there is no such attribute. PyTorch has then renamed or removed it, and what is set
                under the old name would be reached by nobody.
        """
        if not (may_be_missing or hasattr(owner, name)):
            raise AttributeError(
                f"torch {torch.__version__} has no {_described(owner)}.{name}, which virtual GPUs replace"
            )
        self._originals.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def operator(self, owner: Any, name: str, value: Callable) -> None:
        """Replace a function that TorchScript knows by its identity as an operator; it compiles `value` as that one."""
        operator = torch.jit._builtins._find_builtin(getattr(owner, name))
        if operator is not None:
            known = torch.jit._builtins._get_builtin_table()
            known[id(value)] = operator
            self.on_restore(functools.partial(known.pop, id(value), None))
        self.set(owner, name, value)

    def functions(self, owner: Any, prefix: str, *functions: Callable, may_be_missing: bool = False) -> None:
        """Replace `owner.<prefix><name>` by each function, under the function's own name."""
        for function in functions:
            self.set(owner, prefix + function.__name__, function, may_be_missing=may_be_missing)

    def kernel(self, operator: str | torch._ops.OpOverload, function: Callable, key: str) -> None:
        """Let `function` be what an operator of aten runs at a dispatch key, for all threads.

        Args:
            operator: the overload, or its name without the namespace, as in "normal_" or "add.Tensor".
            function: called with the operator's arguments.
            key: the name of the dispatch key, as in "CPU".
        """
        if self._library is None:
            self._library = torch.library.Library("aten", "IMPL")
            self.on_restore(self._take_kernels_away)
        with warnings.catch_warnings():
            # PyTorch says once in a process that kernels of its own are overridden, which is what is meant here.
            warnings.filterwarnings("ignore", message="Warning only once for all operators")
            self._library.impl(operator, function, key)

    def _take_kernels_away(self) -> None:
        if self._library is not None:
            self._library._destroy()
            self._library = None

    def when_imported(self, module: str, install: Callable[[Any], None]) -> None:
        """Call `install(module)` when that module is loaded, now or later: it need not be imported for this.

        What `install` replaces goes through this object, too, so that it is put back with everything else.
        """
        self.on_restore(imports.after(module, lambda: install(sys.modules[module])))

    def on_restore(self, undo: Callable[[], None]) -> None:
        """Call `undo` when everything is put back: for what is not an attribute."""
        self._undo.append(undo)

    def forget(self, cached: Any) -> None:
        """Clear a cache of PyTorch's that may hold what is replaced, now and when everything is put back."""
        cached.cache_clear()
        self.on_restore(cached.cache_clear)

    def restore(self) -> None:
        """Put every original back, last replaced first; a Ctrl-C counts when all of them are back."""
        with _interrupted_later():
            while self._undo:
                self._undo.pop()()
            while self._originals:
                owner, name, value = self._originals.pop()
                if value is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Hold a Ctrl-C back until the end of the block, where the thread is the one that Python tells of it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pressed: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *press: pressed.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        handler(*pressed[0])


def _described(owner: Any) -> str:
    """The dotted name of a module or class."""
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__qualname__}"
    return getattr(owner, "__name__", repr(owner))
