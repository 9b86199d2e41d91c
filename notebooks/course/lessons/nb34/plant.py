"""Plant bugs into the right program, and graft a reader's functions onto it, by their names."""

import ast
import linecache
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from course.lessons.nb34.bugs import KINDS, RIGHT, Bug, Edits, Kind

Definitions = dict[str, str]  # name of a function or class -> its source


def edited(text: str, edits: Edits) -> str:
    """The text with each replacement made. Raises ValueError where an old text is not there exactly once."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"`edits`: {text.count(old)} times in the program, and it has to be once: {old!r}")
        text = text.replace(old, new)
    return text


def chosen(seed: int) -> dict[Kind, Bug]:
    """Which form of each kind a seed takes; 0 takes the first of each, which on one GPU changes nothing."""
    random = Random(seed)
    return {kind: kind.forms[0] if seed == 0 else random.choice(kind.forms) for kind in KINDS}


def plant(seed: int) -> str:
    """The program with one bug of each kind."""
    text = RIGHT
    for bug in chosen(seed).values():
        text = edited(text, bug.edits)
    return text


def definitions(text: str) -> Definitions:
    """The functions and classes at the top level of a program, by name; of two with one name the last, as in Python.

    Raises SyntaxError.
    """
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def graft(text: str, parts: Mapping[str, str]) -> str:
    """The program with these definitions in place of its own; new ones come before all others."""
    own = definitions(text)
    new = [source for name, source in parts.items() if name not in own]
    for name in own.keys() & parts.keys():
        text = text.replace(own[name], parts[name])
    return text.replace("def middle_points", "\n\n\n".join([*new, "def middle_points"]), 1)


def source_of(part: Callable[..., Any]) -> tuple[str, str]:
    """Name and source of a function or class, also of a cell, where `inspect.getsource` does not find classes.

    Raises ValueError where there is no source to read.
    """
    methods = [part, *vars(part).values()] if isinstance(part, type) else [part]
    for code in (method.__code__ for method in methods if hasattr(method, "__code__")):
        found = definitions("".join(linecache.getlines(code.co_filename)))
        if part.__name__ in found:
            return part.__name__, found[part.__name__]
    raise ValueError(f"`{getattr(part, '__name__', part)}` is not a function or a class with a source at the top level")


def program(text: str, name: str = "ten_bugs.py") -> dict[str, Any]:
    """The names of a program after its definitions have run; its `main` is not called."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "ten_bugs"}
    exec(compile(text, name, "exec"), names)
    return names
