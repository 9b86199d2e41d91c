"""Compiled kernels, one file each. Each is optional: without it, its caller computes in plain torch."""

import functools
import importlib
from types import ModuleType


@functools.cache
def compiled(name: str) -> ModuleType | None:
    """The compiled CPU kernels of operator `name` (`numba_<name>.py`), or None where numba is missing or fails to load.

    Imported on first use: loading numba takes about half a second, which `import frcnn_lite.ops` should not cost.
    """
    try:
        return importlib.import_module(f"frcnn_lite.ops.kernels.numba_{name}")
    except (ImportError, RuntimeError):  # RuntimeError: numba finds no folder that it may write its cache to
        return None
