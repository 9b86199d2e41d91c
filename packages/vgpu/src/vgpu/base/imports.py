"""Doing something once a module is loaded, if it ever is: what is rarely used is not imported for its own sake."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable


def after(name: str, then: Callable[[], None]) -> Callable[[], None]:
    """Call `then` once `name` is loaded: now, or when somebody imports it. Returns a function that takes it back."""
    if name in sys.modules:
        then()
        return lambda: None
    waiting = _Waiting(name, then)
    sys.meta_path.insert(0, waiting)  # type: ignore[arg-type]
    return waiting.stop


class _Waiting:
    """An import hook for one module."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # type: ignore[arg-type]

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Where the module is; once it is loaded, `then` is called. Other modules are left to other hooks."""
        if name != self.name:
            return None
        self.stop()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: object) -> None:
                load(module)  # type: ignore[arg-type]
                self.then()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign, assignment]
        return spec
