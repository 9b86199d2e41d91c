"""Write repairs that are one word into the file: `python -m multigpu lint --fix PATH...`.

A rule is here if its repair follows from the finding alone. The code does not show whether a loss is a mean or a sum,
or which process should be rank 0, so such findings are left to the reader.
"""

import ast
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .names import keyword
from .readings import Reading
from .rules import CHECKS, RULES
from .rules.module_prefix import wrapped_sometimes
from .scopes import Program
from .source import UNPARSED, Source, parse, read

BOM = b"\xef\xbb\xbf"
MODULE = b".module"


class Edit(NamedTuple):
    """A word and its place: a line from 1, and the first and last byte of it from 0, as `ast` counts them."""

    line: int
    start: int
    end: int
    word: str
    rule: str


def through_module(node: ast.AST, reading: Reading, lines: list[bytes]) -> Edit | None:
    """`wrapped.decode` becomes `wrapped.module.decode`; None if some wrapping is under a condition."""
    assert isinstance(node, ast.Attribute)
    wrappers = {wrapper for flow in reading.everywhere for wrapper in flow.asked.get(node, ())}
    if wrappers & wrapped_sometimes(reading.program):
        return None
    line, end = _end(node.value)
    return Edit(line, end, end, ".module", "FL012")


def to_cpu(node: ast.AST, reading: Reading, lines: list[bytes]) -> Edit | None:
    """`torch.load(file)` becomes `torch.load(file, map_location="cpu")`; None if ")" is alone on its line."""
    return _with_argument(node, lines, 'map_location="cpu"', "FL014")


def not_reentrant(node: ast.AST, reading: Reading, lines: list[bytes]) -> Edit | None:
    """`checkpoint(f, x)` becomes `checkpoint(f, x, use_reentrant=False)`, and `True` there becomes `False`."""
    assert isinstance(node, ast.Call)
    given = keyword(node, "use_reentrant")
    if given is None:
        return _with_argument(node, lines, "use_reentrant=False", "FL024")
    line, end = _end(given)
    return Edit(line, given.col_offset, end, "False", "FL024")


def _with_argument(node: ast.AST, lines: list[bytes], argument: str, rule: str) -> Edit | None:
    """A call with one more argument at its end; None if ")" is alone on its line."""
    assert isinstance(node, ast.Call)
    line, end = _end(node)
    before = lines[line - 1][: end - 1]  # the line up to the closing parenthesis
    if not before.strip():
        return None
    comma = "" if before.rstrip().endswith(b",") else ","
    return Edit(line, end - 1, end - 1, f"{comma} {argument}", rule)


def without_module(node: ast.AST, reading: Reading, lines: list[bytes]) -> Edit | None:
    """`model.module.decode` becomes `model.decode`; None if the line is broken before the word."""
    assert isinstance(node, ast.Attribute)
    line, end = _end(node)
    start = end - len(MODULE)
    return Edit(line, start, end, "", "FL019") if lines[line - 1][start:end] == MODULE else None


FIXES: dict[str, Callable[[ast.AST, Reading, list[bytes]], Edit | None]] = {
    "FL012": through_module,
    "FL014": to_cpu,
    "FL019": without_module,
    "FL024": not_reentrant,
}


def fix(path: Path) -> list[Edit]:
    """Write the repairs that are one word into a Python file.

    The file is replaced in one step, so an interruption leaves the old one whole; a link to it stays a link.

    Args:
        path: the file. A notebook, a file that is not UTF-8 and one that does not parse are left as they are.

    Returns:
        The repairs that were written.

    Raises:
        ValueError: the file cannot be written.
        SyntaxError: Python cannot read the file, because of the encoding that its first line names.
    """
    data = path.read_bytes()
    if path.suffix != ".py" or not _is_readable(data):
        return []
    lines = data.removeprefix(BOM).split(b"\n")
    try:
        edits = sorted(set(_edits(read(path), lines)))
    except UNPARSED:
        return []
    for edit in reversed(edits):  # from the end, so that a repair does not move the places of the next
        old = lines[edit.line - 1]
        lines[edit.line - 1] = old[: edit.start] + edit.word.encode() + old[edit.end :]
    if edits:
        repaired = b"\n".join(lines)
        parse(repaired)  # a mistake here must not reach the disk
        _replace(path.resolve(), (BOM if data.startswith(BOM) else b"") + repaired)
    return edits


def _edits(code: Source, lines: list[bytes]) -> Iterator[Edit]:
    reading = Reading(Program(parse(code.text), code.path))
    texts = (part for part in ast.walk(reading.program.tree) if isinstance(part, ast.JoinedStr))
    unplaced = {part for text in texts for part in ast.walk(text)}  # until Python 3.12 their places are wrong
    for rule, check in CHECKS.items():
        for node, _ in check(reading) if rule.code in FIXES else ():
            if node in unplaced:
                continue
            first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
            edit = None if code.silences(first, last, rule.code) else FIXES[rule.code](node, reading, lines)
            if edit:
                yield edit


def _end(node: ast.expr) -> tuple[int, int]:
    """The line in which a piece of code ends, and the byte of it."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _is_readable(data: bytes) -> bool:
    """Whether the lines of these bytes are those that `ast` counts: UTF-8, and no line that ends in CR alone."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\r" not in data.replace(b"\r\n", b"")


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    if not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222):  # root may write everywhere, and should not
        raise ValueError(f"{path} is not repaired: it may not be written")
    try:
        partial.write_bytes(data)
        shutil.copymode(path, partial)
        partial.replace(path)
    except OSError as error:
        raise ValueError(f"{path} is not repaired: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def told(path: Path, edit: Edit) -> str:
    """The text of a repair for the terminal."""
    return f"{path}:{edit.line}: fixed [{edit.rule}]: {RULES[edit.rule].fix}"
