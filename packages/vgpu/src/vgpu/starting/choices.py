"""How options, and variables in their place, describe each GPU; an error names the option or the variable.

Their names are those of `vgpu.enable`'s arguments: `--memory`, `--vgpus-memory`, `VGPUS_MEMORY`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from vgpu.machine import contexts, memory, profiles, rng, triton

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "memory": memory.parse_bytes,
    "profile": profiles.check,
    "errors": contexts.check,
    "random": rng.check,
    "triton": triton.check,
}


def of_each(given: Mapping[str, str | None], option: str = "--{}") -> dict[str, Any]:
    """The arguments of `vgpu.enable` that options gave, or else variables; an empty variable says nothing.

    Args:
        given: the values of the options, by the names of the arguments; None, or no entry, where there was none.
        option: how an option of that name is written.

    Raises:
        ValueError: for a bad value.
    """
    return {name: _checked(name, given.get(name), option.format(name)) for name in _CHECKS}


def _checked(name: str, value: str | None, source: str) -> str | None:
    if value is None:
        source = f"VGPUS_{name.upper()}"
        value = os.environ.get(source) or None
    try:
        _CHECKS[name](value)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return value
