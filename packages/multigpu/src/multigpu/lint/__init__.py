"""Find in PyTorch code what goes wrong on several GPUs: `python -m multigpu lint PATH...`."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from ..shown import show
from . import source, tokens
from .finding import Finding, Rule
from .fixes import fix, told
from .readings import Reading
from .rules import CHECKS, NOT_PYTHON_3, RULES
from .sarif import sarif
from .scopes import Program
from .source import UNPARSED, Source

FOUND, BAD_INPUT = 1, 2
EPILOG = """\
Each finding ends with the code of its rule, such as FL001.
To silence one, write "# noqa: FL001" at the end of its line, and add why. "# noqa" alone silences every rule there.
A line "# multigpu: noqa: FL002" silences one rule in the whole file.
A file that is not Python 3 is only searched for words such as ".cuda()", and FL000 reports it.
The exit code is 0 if nothing was found, 1 if something was found, and 2 if a path cannot be read.
"""


def main(argv: list[str] | None = None) -> int:
    """Read Python files and notebooks, without running them, and print the lines that go wrong on several GPUs."""
    parser = argparse.ArgumentParser(
        prog="python -m multigpu lint",
        description=main.__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a .py or .ipynb file, or a folder of them; needed for everything but --rules",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--json",
        action="store_true",
        help="print the findings as JSON: a list of objects with path, line, rule, message and fix",
    )
    forms.add_argument(
        "--sarif", action="store_true", help="print the findings as SARIF 2.1.0, which GitHub and editors read"
    )
    parser.add_argument(
        "--rules", action="store_true", help="print every rule with its reason and its fix, and read no file"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="first write the repairs that are one word into the .py files, then print what is left",
    )
    options = parser.parse_args(argv)
    if options.rules:
        print("\n".join(f"{rule.code} {rule.name}: {rule.reason}\n      {rule.fix}" for rule in RULES.values()))
        return 0
    if not options.paths:
        parser.error("give a PATH to lint")
    unfixed = _fix_paths(options.paths) if options.fix else []
    findings, unread = _lint_paths(options.paths)
    unread = list({str(error): error for error in (*unfixed, *unread)}.values())
    if options.sarif:
        show(sarif(findings, unread))
    elif options.json:
        show(json.dumps([found.to_dict() for found in findings], indent=1))
    elif findings:
        show("\n".join(map(_told, findings)))
    show(_summary(findings, unread), sys.stderr)
    return BAD_INPUT if unread else FOUND if findings else 0


def _summary(findings: list[Finding], unread: list[Exception]) -> str:
    """The errors of files that could not be read, and the number of findings. "nothing found" needs every file read."""
    errors = [f"error: {error}" for error in unread]
    if findings:
        return "\n".join([*errors, f"{len(findings)} found"])
    return "\n".join(errors) or "nothing found"


def _told(found: Finding) -> str:
    """A finding for the terminal: its place, reason and repair, and the entry of the catalogue about it."""
    see = found.broken.see
    about = f"\n    about: python -m multigpu explain {see}" if see else ""
    return f"{found.where}: {found.message} [{found.rule}]\n    fix: {found.broken.fix}{about}"


def _files(paths: list[str], unread: list[Exception]) -> Iterator[Path]:
    """The files of all paths. The error of a path that cannot be read is appended to `unread`."""
    for given in paths:
        try:
            yield from source.find(given, unread.append)
        except (ValueError, OSError) as error:
            unread.append(error)


def _fix_paths(paths: list[str]) -> list[Exception]:
    """Write the repairs that are one word, and print each; returns the errors of the files that stay as they are."""
    unfixed: list[Exception] = []
    for path in _files(paths, unfixed):
        try:
            for edit in fix(path):
                show(told(path, edit), sys.stderr)
        except SyntaxError as error:
            unfixed.append(ValueError(f"{path} is not repaired: {error.msg}"))
        except (ValueError, OSError) as error:
            unfixed.append(error)
    return unfixed


def _lint_paths(paths: list[str]) -> tuple[list[Finding], list[Exception]]:
    """The findings of all files, and the errors of those that cannot be read."""
    findings: list[Finding] = []
    unread: list[Exception] = []
    for path in _files(paths, unread):
        try:
            findings += lint(source.read(path))
        except (ValueError, OSError) as error:
            unread.append(error)
    return findings, unread


def lint(code: Source) -> list[Finding]:
    """The findings of one file that no comment silences, in the order of its lines."""
    found: dict[tuple[int, int, Rule], Finding] = {}
    for first, last, rule, what in _search(code):
        if not code.silences(first, last, rule.code):
            cell, line = code.place(first)
            found.setdefault((cell, line, rule), Finding(code.path, cell, line, rule, what))
    return sorted(found.values())


def lint_text(text: str, path: str = "<text>") -> list[Finding]:
    """The findings in a text of Python code."""
    return lint(Source(path, text))


def _search(code: Source) -> list[tuple[int, int, Rule, str]]:
    """(first line, last line, rule, what was found) for each finding, also for those that a comment silences."""
    try:
        reading = Reading(Program(source.parse(code.text), code.path))
        found = [(node, rule, what) for rule, check in CHECKS.items() for node, what in check(reading)]
    except UNPARSED as error:
        line = getattr(error, "lineno", None) or 1
        unread = (line, line, NOT_PYTHON_3, f"not read ({getattr(error, 'msg', str(error)) or 'nested too deeply'})")
        return [unread, *((line, line, RULES[rule], what) for line, rule, what in tokens.check(code.text))]
    found.sort(key=lambda each: (each[0].lineno, each[0].col_offset))  # type: ignore[attr-defined]
    return [(node.lineno, node.end_lineno or node.lineno, rule, what) for node, rule, what in found]  # type: ignore[attr-defined]
