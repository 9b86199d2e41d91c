"""Tracebacks end in the program's own line, as on GPUs, also those that a spawned rank sends to its parent as text."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

from vgpu.base import program, variables
from vgpu.base.patches import Patches

_OWN = "vgpu."


def install(patches: Patches) -> None:
    """Leave out the frames of this package in pytest, in Python's `traceback` and at the end of a program."""
    if variables.choice("VGPUS_TRACEBACK", "short", "full") == "full":  # for who looks for a fault of virtual GPUs
        return
    for name, module in list(sys.modules.items()):
        if name.startswith(_OWN):
            vars(module)["__tracebackhide__"] = True  # to stay: pytest may look when a block has ended
    begin = traceback.TracebackException.__init__

    def __init__(self: Any, kind: Any, error: Any, trace: Any, **options: Any) -> None:
        begin(self, kind, error, without_own(trace), **options)

    patches.set(traceback.TracebackException, "__init__", __init__)
    if sys.excepthook is sys.__excepthook__:  # it is written in C, and asks nothing of the module
        patches.set(sys, "excepthook", traceback.print_exception)


def without_own(trace: TracebackType | None) -> TracebackType | None:
    """A copy without the frames of this package; the original where all frames are."""
    frames, one = [], trace
    while one is not None:
        if not program.module_of(one.tb_frame).startswith(_OWN):
            frames.append(one)
        one = one.tb_next
    shown = None
    for one in reversed(frames):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown or trace
