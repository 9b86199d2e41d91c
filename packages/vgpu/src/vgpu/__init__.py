"""Virtual GPUs: unmodified multi-GPU PyTorch programs on a machine that has none.

    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:1")

Values are computed on the CPU; devices, errors, gradients and memory are accounted as on a machine with n GPUs.
Importing this package replaces nothing. README.md says how it works and what it is not.

PYTEST_DONT_REWRITE: workers of xdist have it before pytest, which would warn that it cannot rewrite assertions here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names below, for programs that read types and run nothing
    from vgpu.distributed.ranks import ranks as ranks
    from vgpu.machine.memory import fresh_memory as fresh_memory
    from vgpu.observing.strict import check_placement as check_placement
    from vgpu.observing.tracing import Trace as Trace
    from vgpu.observing.tracing import trace as trace
    from vgpu.racing.report import RaceError as RaceError
    from vgpu.racing.watch import races as races
    from vgpu.switch import check_gpus as check_gpus
    from vgpu.switch import disable as disable
    from vgpu.switch import enable as enable
    from vgpu.switch import is_enabled as is_enabled
    from vgpu.switch import start_if_changed as start_if_changed
    from vgpu.switch import virtual_gpus as virtual_gpus

__version__ = "0.1.0"

# What other programs may use, and where it is. Everything else in this package is its own, and may change at any time.
_MODULES = {
    "Trace": "observing.tracing",
    "check_gpus": "switch",
    "check_placement": "observing.strict",
    "disable": "switch",
    "enable": "switch",
    "fresh_memory": "machine.memory",
    "RaceError": "racing.report",
    "is_enabled": "switch",
    "races": "racing.watch",
    "ranks": "distributed.ranks",
    "start_if_changed": "switch",
    "trace": "observing.tracing",
    "virtual_gpus": "switch",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    # Late, for the pytest plugin lies in this package and must not import torch where nobody asked for GPUs.
    if name in _MODULES:
        import torch  # noqa: F401  first: startup.py may wait for it, and must find none of these files half imported

        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]  # for completion, and for pages that are made from docstrings
