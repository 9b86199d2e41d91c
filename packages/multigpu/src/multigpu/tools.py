"""The tools that an agent may call: their names, their arguments as JSON schemas, and what they return."""

from collections.abc import Callable, Mapping
from typing import Any

from multigpu.failures.lookup import look_up
from multigpu.failures.record import record
from multigpu.lint import lint_text

MOST = 4_000_000  # letters of one argument, about a log of 4 MB, which takes a second
READ_ONLY = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


class BadArguments(ValueError):
    """Arguments of a call that the tool cannot take."""


def _tool(name: str, title: str, description: str, argument: str, meaning: str) -> dict[str, Any]:
    """The description of a tool with one argument, a text."""
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning}},
        "required": [argument],
        "additionalProperties": False,
    }
    return {"name": name, "title": title, "description": description, "inputSchema": schema, "annotations": READ_ONLY}


TOOLS = [
    _tool(
        "explain",
        "Explain an error of PyTorch on several GPUs",
        "Cause, check, fix and sources of a failure of PyTorch on one or several GPUs (DataParallel, DDP, FSDP, NCCL, "
        "torchrun, CUDA memory and drivers), from a catalogue whose programs are tested. It says whether it is sure, "
        "guesses, or does not know.",
        "text",
        "the whole traceback or log, an error message, a question in plain words, or the name of an entry",
    ),
    _tool(
        "lint",
        "Find lines that go wrong on several GPUs",
        "Reads Python code without running it, and returns the lines that break or give wrong numbers on several "
        "GPUs, each with its reason and its fix.",
        "code",
        "the text of a Python file",
    ),
]


def _explain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return record(look_up(_only(arguments, "text")))


def _lint(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"findings": [found.to_dict() for found in lint_text(_only(arguments, "code"), path="code")]}


def _only(arguments: Mapping[str, Any], name: str) -> str:
    """The one argument of a tool.

    Raises:
        BadArguments: if it is missing, is not a text or is empty, or if there are more.
    """
    if not isinstance(arguments, Mapping) or set(arguments) != {name}:
        given = ", ".join(map(repr, arguments)) if isinstance(arguments, Mapping) else type(arguments).__name__
        raise BadArguments(f"the arguments must be an object with {name!r} alone, got {given or 'none'}")
    value = arguments[name]
    if not isinstance(value, str) or not value.strip():
        raise BadArguments(f"`{name}` must be a text that is not empty, got {value!r}")
    if len(value) > MOST:
        raise BadArguments(f"`{name}` must have at most {MOST:,} letters, got {len(value):,}: give its last part")
    return value


CALLS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"explain": _explain, "lint": _lint}
