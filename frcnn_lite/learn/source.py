"""The code behind a name, folded under a cell: what a notebook shows is what the package ships."""

import inspect
from collections.abc import Callable
from typing import Any

from frcnn_lite.learn.card import Card, folded


def source(function: Callable[..., Any]) -> Card:
    """Source of a function or class of this package or of torch, folded behind its full name."""
    return folded(f"Source of `{function.__module__}.{function.__qualname__}`", inspect.getsource(function))
