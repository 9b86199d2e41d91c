"""Variables of the environment that are one of a few words."""

from __future__ import annotations

import os


def choice(name: str, *allowed: str) -> str:
    """What a variable says: one of the allowed words, the first where it is missing or empty.

    Raises:
        ValueError: if it says something else.
    """
    chosen = os.environ.get(name) or allowed[0]
    if chosen not in allowed:
        *others, last = map(repr, allowed)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, it is {chosen!r}")
    return chosen
