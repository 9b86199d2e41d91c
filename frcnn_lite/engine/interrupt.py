"""Ctrl-C between two steps: a half-done optimizer step must never reach a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the user has asked to stop. `requested` is read between steps."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def deferred_interrupt() -> Iterator[Interruption]:
    """Within the block the first Ctrl-C sets `requested`; the second raises KeyboardInterrupt at once.

    A stopped notebook cell arrives as the same signal. Python delivers signals to the main thread alone: in any other
    thread this changes nothing.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.requested = True

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interruption
    finally:
        # None stands for a handler that was not set from Python and cannot be put back from it either.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def ignore_interrupts(worker_id: int) -> None:
    """For DataLoader workers: Ctrl-C reaches every process of a terminal, and only the trainer shall act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
