"""The code behind a name, folded under a cell: what a notebook shows is what the package ships."""

import ast
import inspect
import re
from collections.abc import Callable
from textwrap import dedent
from typing import Any

from course.kit.learn.card import Card, folded


def source(function: Callable[..., Any], *, helpers: bool = False) -> Card:
    """Source of a function or class of this package or of torch, folded behind its full name.

    helpers: show the private functions of the same module as well that it needs, each after the one that names it.
    """
    shown = _with_helpers(function, []) if helpers else [function]
    code = "\n\n".join(map(read_source, shown))
    return folded(f"Source of `{function.__module__}.{function.__qualname__}`", code)


def read_source(part: Callable[..., Any]) -> str:
    """Source of a function or class, without the remarks in it that speak to a linter and not to a reader."""
    return re.sub(r"[ \t]*# noqa\b.*", "", inspect.getsource(part))


def _with_helpers(function: Callable[..., Any], seen: list[Callable[..., Any]]) -> list[Callable[..., Any]]:
    seen.append(function)
    own = vars(inspect.getmodule(function))
    names = [node.id for node in ast.walk(ast.parse(dedent(inspect.getsource(function)))) if isinstance(node, ast.Name)]
    for name in names:
        helper = own.get(name)
        if name.startswith("_") and inspect.isfunction(helper) and helper not in seen:
            _with_helpers(helper, seen)
    return seen
