"""The lines of the program that led to an operator."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import CodeType

import torch

MOST = 4  # lines that are kept of each access
_OURS = (str(Path(__file__).parent.parent), str(Path(torch.__file__).parent), "<frozen ")

Frames = tuple[tuple[CodeType, int], ...]  # the innermost first


def users() -> Frames:
    """The innermost lines of the program; where PyTorch alone is on the stack, those of PyTorch."""
    found: list[tuple[CodeType, int]] = []
    others: list[tuple[CodeType, int]] = []
    frame = sys._getframe(1)
    while frame is not None and len(found) < MOST:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS):
            found.append((frame.f_code, frame.f_lineno))
        elif not name.startswith(_OURS[0]) and len(others) < MOST:
            others.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found or others)


def told(frames: Frames) -> str:
    """The lines as text, the innermost first."""
    lines = []
    for code, number in frames:
        source = linecache.getline(code.co_filename, number).strip()
        lines.append(f"      {Path(code.co_filename).name}:{number} in {code.co_name}: {source}")
    return "\n".join(lines) or "      (no line of Python)"
