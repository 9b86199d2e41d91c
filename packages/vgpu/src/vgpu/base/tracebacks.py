"""Tracebacks end in the program's own line, as on GPUs, also those that a spawned rank sends to its parent as text."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

from vgpu.base import program, variables
from vgpu.base.patches import Patches

# What fails at the end of a test has no line of the program, and pytest wants one to show.
_OF_TESTS = "vgpu.observing.", "vgpu.pytest_plugin"


def install(patches: Patches) -> None:
    """Leave out the frames of this package in pytest, in Python's `traceback` and at the end of a program."""
    if variables.choice("VGPUS_TRACEBACK", "short", "full") == "full":  # for who looks for a fault of virtual GPUs
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("vgpu.") and not name.startswith(_OF_TESTS):
            vars(module)["__tracebackhide__"] = True  # to stay: pytest may look when a block has ended
    begin = traceback.TracebackException.__init__

    def __init__(self: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, **options: Any) -> None:
        begin(self, exc_type, exc_value, without_own(exc_traceback), **options)

    patches.set(traceback.TracebackException, "__init__", __init__)
    if sys.excepthook is sys.__excepthook__:  # it is written in C, and asks nothing of the module
        sys.excepthook = traceback.print_exception
        patches.on_restore(_give_back)


def _give_back() -> None:
    if sys.excepthook is traceback.print_exception:  # else the program, or torch.distributed, has set one meanwhile
        sys.excepthook = sys.__excepthook__


def without_own(trace: TracebackType | None) -> TracebackType | None:
    """A copy without the frames of this package and of its `with` blocks; the original where no frame is left."""
    frames, one, own = [], trace, False
    while one is not None:
        name = program.module_of(one.tb_frame)
        own = name.startswith("vgpu.") or (own and name == "contextlib.")
        if not own:
            frames.append(one)
        one = one.tb_next
    shown = None
    for one in reversed(frames):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown or trace
