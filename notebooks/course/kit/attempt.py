"""Run something that may fail, and say in one line how it ended: where the results are, or what the error says."""

import threading
from collections.abc import Callable, Iterable
from typing import Any


def attempt(words: str, function: Callable[..., Iterable[Any]], *args: Any, **kwargs: Any) -> None:
    """Call, and print `words` with the devices of the results or with the end of the error's message.

    What dies in a thread that `function` starts is not printed: two threads would print in the order of a race.
    """
    hook, threading.excepthook = threading.excepthook, _silent
    try:
        print(f"{words}:", [str(out.device) for out in function(*args, **kwargs)])
    except Exception as error:
        print(f"{words}: {type(error).__name__}: {last_line(error)}")
    finally:
        threading.excepthook = hook


def last_line(error: BaseException) -> str:
    """What an error says at its end: of one from a replica, the original message without its type and operator."""
    words = (str(error).splitlines() or [""])[-1].split(" (when")[0]
    return words.removeprefix(f"{type(error).__name__}: ")


def _silent(args: threading.ExceptHookArgs) -> None:
    pass
