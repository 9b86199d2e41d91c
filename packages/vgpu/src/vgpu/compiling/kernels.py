"""Kernels of Triton: refused by name, or run by Triton's interpreter where `TRITON_INTERPRET=1` when they were defined.

The interpreter computes with NumPy on the host's memory, which virtual tensors have. It does not notice an access out
of bounds that the process may make, nor a race, and what a kernel costs is not that of a GPU.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NoReturn

from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.machine import captures, triton


def install(patches: Patches) -> None:
    """Refuse what would look for a driver, as soon as a program has imported it."""
    patches.when_imported("triton.runtime.jit", functools.partial(_install_compiled, patches))
    patches.when_imported("triton.runtime.autotuner", functools.partial(_install_tuned, patches))
    patches.when_imported("triton.runtime.interpreter", functools.partial(_install_interpreted, patches))


def _install_compiled(patches: Patches, jit: Any) -> None:
    """Refuse kernels that would be compiled; those that are interpreted are of a different class."""

    def run(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refusal(self.fn)

    patches.set(jit.JITFunction, "run", run)


def _install_tuned(patches: Patches, autotuner: Any) -> None:
    """Let the first configuration be the best of an interpreted kernel: to measure them would need a driver."""
    original = autotuner.Autotuner.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(_innermost(self.fn), sys.modules["triton.runtime.jit"].JITFunction):
            raise _refusal(self.base_fn)
        return original(self, *args, **kwargs)

    def _bench(self: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        return [0.0, 0.0, 0.0]

    patches.set(autotuner.Autotuner, "run", run)
    patches.set(autotuner.Autotuner, "_bench", _bench)


def _install_interpreted(patches: Patches, interpreter: Any) -> None:
    """Refuse kernels inside of a CUDA graph: no operator would be recorded, and a replay would leave them out."""
    launch = interpreter.GridExecutor.__call__

    @functools.wraps(launch)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if captures.here() is not None:
            raise errors.not_simulated(f"Triton kernels in a CUDA graph ({self.fn.__name__})")
        return launch(self, *args, **kwargs)

    patches.set(interpreter.GridExecutor, "__call__", __call__)


def _innermost(kernel: Any) -> Any:
    """The kernel inside of heuristics and autotuners."""
    while type(kernel).__name__ in ("Heuristics", "Autotuner"):
        kernel = kernel.fn
    return kernel


def _refusal(function: Any) -> NotImplementedError:
    name = getattr(function, "__qualname__", function)
    if triton.chosen() is not None:
        return errors.not_simulated(f"Triton kernels ({name}), and this one was defined before its interpreter was on")
    return errors.not_simulated(f"Triton kernels ({name}); {triton.VARIABLE}=1 lets Triton interpret them on the CPU")
