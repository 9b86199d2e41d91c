"""What a notebook asks for by its key: "NN.name" stands in the file nbNN.py of a folder of the course."""

from importlib import import_module
from typing import Any


def find_by_key(key: str, kind: str, example: str) -> Any:
    """The entry of `key` in `KINDS` of `course/KINDS/nbNN.py`, where `kind` is "question" or "exercise".

    Raises KeyError, with `example` as what a key reads like, when there is none.
    """
    number = key.partition(".")[0]
    home = f"course.lessons.nb{number}.{kind}s"
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        if error.name != home:
            raise  # the file is there, something that it needs is not
        raise KeyError(f"{key!r}: there are no {kind}s of notebook {number!r}; a key reads like {example!r}") from None
    known = {entry.key: entry for entry in getattr(module, f"{kind}s".upper())}
    if key not in known:
        article = "an" if kind[0] in "aeiou" else "a"
        raise KeyError(f"{key!r} is not {article} {kind}; notebook {number} has {', '.join(known)}")
    return known[key]
