"""Kernels for nbval that start although a port was taken from them.

jupyter_client chooses free ports, lets go of them, and tells the kernel to take them. On a machine that runs other
kernels and process groups at the same time, somebody else may be quicker, and the kernel ends before its first word.
"""

import functools
from collections.abc import Callable
from typing import Any

TRIES = 3


def start_again(start: Callable[..., Any]) -> Callable[..., Any]:
    """`start`, tried up to three times while the kernel that it starts dies; the last error is raised."""

    @functools.wraps(start)
    def patient(*args: Any, **options: Any) -> Any:
        for tries_left in reversed(range(TRIES)):
            try:
                return start(*args, **options)
            except RuntimeError as error:
                if not tries_left or "Kernel died" not in str(error):
                    raise
        raise AssertionError("not reached: the last try returns or raises")

    return patient
