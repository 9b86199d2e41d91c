"""The lines of the program on a stack, without those of PyTorch, this package, Python and what runs tests."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import CodeType, FrameType

MOST = 4  # lines that are kept of a stack
_MACHINERY = "threading.", "multiprocessing.", "contextlib.", "functools.", "importlib.", "runpy."
_OTHERS = ("torch.", "vgpu.", *_MACHINERY, "_pytest.", "pluggy.", "unittest.")
_RUNNER = "_pytest.runner."  # whatever called pytest leads to no operator

Frames = tuple[tuple[CodeType, int], ...]  # the innermost first


def is_own(frame: FrameType) -> bool:
    """True for a line of the program."""
    return not module_of(frame).startswith(_OTHERS)


def users() -> Frames:
    """The innermost lines of the program; where PyTorch alone is on the stack, those of PyTorch."""
    found: list[tuple[CodeType, int]] = []
    others: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < MOST:
        module = module_of(frame)
        if module == _RUNNER:
            break
        if not module.startswith(_OTHERS):
            found.append((frame.f_code, frame.f_lineno))
        elif module.startswith("torch.") and len(others) < MOST:
            others.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found or others)


def told(frames: Frames) -> str:
    """The lines as text, the innermost first."""
    return "\n".join(f"      {one(frame)}" for frame in frames) or "      (no line of Python)"


def one(frame: tuple[CodeType, int]) -> str:
    """One line as text."""
    code, number = frame
    source = linecache.getline(code.co_filename, number).strip()
    return f"{Path(code.co_filename).name}:{number} in {code.co_name}: {source}"


def here() -> str:
    """The line of the program that is at work, as the end of a sentence."""
    return "".join(f", at {one(frame)}" for frame in users()[:1])


def module_of(frame: FrameType) -> str:
    """The name of the module that a frame belongs to, and a dot; of one that `python -m` runs, its own name."""
    known = frame.f_globals
    return f"{getattr(known.get('__spec__'), 'name', None) or known.get('__name__', '')}."
