"""The context of each device in this process: alive, or ended by an assertion of a kernel that the host noticed late.

A kernel that meets an index out of range has been left behind by the host, which learns of it at its next wait for the
device. From then on every call of that device fails, until the process ends. With `errors="early"` nothing of this
happens: the error comes at the line that caused it, in the words of the CPU's kernel.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable

from vgpu.base import errors, program, record
from vgpu.machine import ranks

EARLY, LATE = "early", "late"
DEFAULT = LATE
_ENDED = "a context has ended"
_MOST = 1000  # lines of one kernel: CUDA's buffer for them is limited, too


@dataclasses.dataclass
class _End:
    """How a context has ended: the lines that launched the kernel, and whether the host has noticed."""

    frames: program.Frames
    noticed: bool = False


_chosen: list[str | None] = [None]
_of_process: dict[int, _End] = {}  # by the devices whose context has ended
watched: set[str] = set()  # why operators must say for which device they run and wait; mostly empty
begin: list[Callable[[], None]] = []  # called when they must begin to: dispatch.py has them ask nothing until then


def check(when: str | None) -> str | None:
    """Return `when` if it says when errors of kernels come, or None for the default.

    Raises:
        ValueError: if it is something else.
    """
    if when not in (None, EARLY, LATE):
        raise ValueError(f"errors must be 'early' or 'late', got {when!r}")
    return when


def configure(when: str | None) -> None:
    """Let errors of kernels come at their line ("early") or at the next wait ("late"), in contexts that are alive."""
    _chosen[0] = check(when)
    revive()


def chosen() -> str | None:
    """When errors of kernels come, if somebody has chosen it."""
    return _chosen[0]


def is_late() -> bool:
    """True where errors of kernels come at the next wait."""
    return (_chosen[0] or DEFAULT) == LATE


def watch(why: str, wanted: bool) -> None:
    """Have operators say for which device they run and wait, or no longer for this reason."""
    if wanted:
        watched.add(why)
        for called in begin:
            called()
    else:
        watched.discard(why)


def revive() -> None:
    """Give every device a new context, as a new process has it."""
    _of_process.clear()
    watch(_ENDED, False)


def forget_ranks() -> None:
    """Watch no longer for what ended in ranks that were threads: each had contexts of its own."""
    watch(_ENDED, bool(_of_process))


def _ended() -> dict[int, _End]:
    return ranks.own("contexts", dict, _of_process)


def end(ordinal: int, lines: list[str], at_once: bool = False) -> None:
    """Say which assertion of a kernel failed, and end the context of its device.

    Args:
        ordinal: the device.
        lines: one for each thread that failed.
        at_once: True where the host notices in the same call.
    """
    ended = _ended()
    if ordinal not in ended:  # else no kernel runs any more
        print(*lines[:_MOST], sep="\n", file=sys.stderr, flush=True)
        ended[ordinal] = _End(program.users())
        launched = next((f", launched by {program.one(frame)}" for frame in ended[ordinal].frames), "")
        record.write(record.ENDED, f"a kernel failed on cuda:{ordinal}{launched}")
        watch(_ENDED, True)
    if at_once or os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        reach(ordinal)


def settle() -> None:
    """Raise if the context of a device has ended and the host has not caught up with it.

    No line of the program waits here, so the error says which ones launched the kernel.
    """
    for known in _ended().values():
        if not known.noticed:
            known.noticed = True
            error = errors.device_assert()
            error.add_note(f"The kernel that failed was launched by\n{program.told(known.frames)}")
            raise error


def has_ended(ordinal: int) -> bool:
    """True where a kernel has failed, whether or not the host knows."""
    return ordinal in _ended()


def launch(ordinal: int) -> None:
    """Raise if the host knows that the context of a device has ended."""
    known = _ended().get(ordinal)
    if known is not None and known.noticed:
        raise errors.device_assert() from None


def reach(ordinal: int) -> None:
    """Raise if the context of a device has ended: the host has caught up with it."""
    ended = _ended()
    if ordinal in ended:
        ended[ordinal].noticed = True
        raise errors.device_assert() from None
