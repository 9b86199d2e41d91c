"""Ctrl-C and SIGTERM between two steps: a half-done optimizer step must never reach a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the run is to stop. `requested` is read between steps; `terminated`: the request was SIGTERM."""

    def __init__(self) -> None:
        self.requested = self.terminated = False


@contextmanager
def deferred_interrupt() -> Iterator[Interruption]:
    """Within the block the first Ctrl-C or SIGTERM sets `requested`; a second Ctrl-C raises KeyboardInterrupt at once.

    A stopped notebook cell arrives as the same signal as Ctrl-C. SIGTERM is how Slurm, `docker stop` and `timeout` say
    that they will soon end the process by force. It often comes twice, once to the process and once to its group, so a
    second one changes nothing. Python delivers signals to the main thread alone: in any other thread this block changes
    nothing.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.requested = True

    def on_terminate(signum: int, frame: FrameType | None) -> None:
        interruption.requested = interruption.terminated = True

    before = signal.signal(signal.SIGINT, on_interrupt)
    before_terminate = signal.signal(signal.SIGTERM, on_terminate)
    try:
        yield interruption
    finally:
        # None stands for a handler that was not set from Python and cannot be put back from it either.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before_terminate is None else before_terminate)


def ignore_interrupts(worker_id: int) -> None:
    """For DataLoader workers: Ctrl-C and a job's SIGTERM reach every process, and the trainer alone acts on them.

    The second SIGTERM ends a worker. It is the trainer's own, for a worker that does not end when it is asked to.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_the_next_time)


def _end_the_next_time(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
