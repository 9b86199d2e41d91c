"""Options of a command, made from the fields of a dataclass: name, default and meaning of each are written there alone.

The file of the dataclass is read and not imported: it needs torch, and `--help` is quick. An option that is not given
is None, or not in the namespace at all: the dataclass has the default.
"""

import argparse
import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]


class Field(NamedTuple):
    """One field of a dataclass, as it is written there."""

    name: str
    kind: str
    """its annotation"""
    default: str
    meaning: str
    """the string under it"""
    choices: tuple[str, ...] | None
    """where the annotation is the name of a Literal"""


def fields_of(module: str, dataclass: str) -> list[Field]:
    """The fields of a dataclass of this package that have a meaning written under them, in their order.

    Args:
        module: its dotted name below the package, such as "engine.config".
    """
    body = ast.parse(PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")).body
    literals = {
        statement.targets[0].id: ast.literal_eval(statement.value.slice)
        for statement in body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Subscript)
        and ast.unparse(statement.value.value) == "Literal"
    }
    (found,) = (node for node in body if isinstance(node, ast.ClassDef) and node.name == dataclass)
    fields = []
    for field, below in zip(found.body, found.body[1:], strict=False):
        if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
            continue
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value:
            kind, default = ast.unparse(field.annotation), ast.unparse(field.value).strip("'")
            default = "none" if default in ("", "()") else default
            fields.append(Field(field.target.id, kind, default, str(below.value.value), literals.get(kind)))
    return fields


def add_fields(parser: Any, fields: Iterable[Field]) -> None:
    """An option for each field: `--batch-size` for `batch_size`."""
    for field in fields:
        meaning, _, own = " ".join(field.meaning.split()).removesuffix(".").partition(f". {OWN}")
        default = f"{field.default}, for your own pictures {own}" if own else field.default
        text = f"{meaning[0].lower()}{meaning[1:]}".replace("%", "%%")
        keywords: dict[str, Any] = {"help": f"{text} (default: {default})", "metavar": METAVARS.get(field.kind)}
        if field.kind == "bool":
            keywords = {"help": text, "action": argparse.BooleanOptionalAction}
        elif field.kind == "tuple[str, ...]":
            keywords |= {"action": "append"}
        else:
            keywords |= {"type": KINDS.get(field.kind, str), "choices": field.choices}
        parser.add_argument(f"--{field.name.replace('_', '-')}", **keywords)


def given(options: argparse.Namespace, fields: Iterable[Field]) -> dict[str, Any]:
    """The fields that were given, with their values."""
    values = {field.name: getattr(options, field.name) for field in fields}
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if value is not None
    }


def height_by_width(text: str) -> tuple[int, int]:
    """(64, 96) for "64x96", (64, 64) for "64"."""
    height, _, width = text.partition("x")
    return int(height), int(width or height)


OWN = "Your own pictures: "  # begins the last sentence of a meaning: what `engine.resolve` takes for them by default
METAVARS = {"int": "N", "float": "X", "tuple[int, int]": "HxW", "tuple[str, ...]": "WHAT=HOW"}
KINDS = {"int": int, "float": float, "str": str, "tuple[int, int]": height_by_width}
