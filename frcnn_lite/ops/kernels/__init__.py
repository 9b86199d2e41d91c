"""Kernels, one file for each operator and each way to compute it: `numba_roi_pool.py`, `triton_roi_pool.py`, ...

Each is optional but those in plain torch: without it, its caller computes in plain torch.
"""

import functools
import importlib
from types import ModuleType


@functools.cache
def compiled(name: str, kind: str = "numba") -> ModuleType | None:
    """The kernels of operator `name` made with `kind`, or None where that package is missing or fails to load.

    Imported on first use: loading numba takes about half a second, which `import frcnn_lite.ops` should not cost.
    """
    try:
        return importlib.import_module(f"frcnn_lite.ops.kernels.{kind}_{name}")
    except (ImportError, RuntimeError):  # RuntimeError: numba finds no folder that it may write its cache to
        return None
