"""Virtual GPUs: unmodified multi-GPU PyTorch programs on a machine that has none.

    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:1")

Values are computed on the CPU; devices, errors, gradients and memory are accounted as on a machine with n GPUs.
Importing this package replaces nothing. README.md says how it works and what it is not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vgpu.strict import check_placement
    from vgpu.switch import disable, enable, is_enabled, virtual_gpus
    from vgpu.tracing import Trace, trace

__all__ = ["Trace", "check_placement", "disable", "enable", "is_enabled", "trace", "virtual_gpus"]

_MODULES = dict.fromkeys(("disable", "enable", "is_enabled", "virtual_gpus"), "switch")
_MODULES |= {"Trace": "tracing", "trace": "tracing", "check_placement": "strict"}


def __getattr__(name: str) -> Any:
    # Late, for the pytest plugin lies in this package and must not import torch where nobody asked for GPUs.
    if name in _MODULES:
        import torch  # noqa: F401  first: startup.py may wait for it, and must find none of these files half imported

        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
