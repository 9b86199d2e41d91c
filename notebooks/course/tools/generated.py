"""A command that writes files which the repository keeps: arguments are read first, and `--check` only compares."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from course.kit.files import NOTEBOOKS


def write_or_check(
    tool: str, about: str | None, made: Callable[[], dict[Path, str]], arguments: Sequence[str] | None = None
) -> int:
    """Write the files that `made` returns, or say which of them are out of date.

    Args:
        tool: its name on the command line, `python -m course TOOL`.
        about: the docstring of the command's module, whose first line `--help` shows.
        made: makes the text of each file, by its path; called after the arguments have been read.
        arguments: those of the command line unless given.

    Returns:
        The exit code: 1 if `--check` was given and a file is not as it would be written, else 0.
    """
    parser = argparse.ArgumentParser(prog=f"python -m course {tool}", description=(about or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file is out of date")
    check = parser.parse_args(arguments).check
    stale = {path: text for path, text in made().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{'out of date' if check else 'written'}: {_short(path)}")
    if not stale:
        print("up to date")
    return int(check and bool(stale))


def _short(path: Path) -> str:
    """A path from the root of the repository."""
    return str(path.relative_to(NOTEBOOKS.parent)) if path.is_relative_to(NOTEBOOKS.parent) else str(path)
