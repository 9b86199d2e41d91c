"""Run something that may fail, and say in one line how it ended: what it gave, or what the error says."""

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


def outcome_of(function: Callable[[], Any], failed: str = "an error") -> Any:
    """What `function` returns; where it raises, `failed`, and the first sentence of the error is printed.

    So the cell below a question needs no `try`, which would say how the question is answered.
    """
    try:
        return function()
    except Exception as error:
        print(f"{type(error).__name__}: {last_line(error).split('. ')[0]}")
        return failed


def last_line(error: BaseException) -> str:
    """What an error says at its end: of one from a replica, the original message without its type and operator."""
    words = (str(error).splitlines() or [""])[-1].split(" (when")[0]
    return words.removeprefix(f"{type(error).__name__}: ")


def _silent(args: threading.ExceptHookArgs) -> None:
    pass
