"""Whether kernels of Triton are run by its own interpreter, on the CPU, or refused by name."""

from __future__ import annotations

import importlib.util

INTERPRET = "interpret"
VARIABLE = "TRITON_INTERPRET"  # Triton's own, which it reads wherever a kernel is defined

_chosen: list[str | None] = [None]


def check(how: str | None) -> str | None:
    """Return `how` if it says how kernels of Triton run, or None: then they are refused.

    Raises:
        ValueError: if it is something else, or Triton is not installed.
    """
    if how not in (None, INTERPRET):
        raise ValueError(f"triton must be 'interpret', got {how!r}")
    if how and importlib.util.find_spec("triton") is None:
        raise ValueError("triton='interpret' needs the package triton, which is not installed: pip install triton")
    return how


def configure(how: str | None) -> None:
    """Remember how kernels of Triton run. Triton itself reads its variable."""
    _chosen[0] = how


def chosen() -> str | None:
    """How kernels of Triton run, if somebody has chosen it."""
    return _chosen[0]
