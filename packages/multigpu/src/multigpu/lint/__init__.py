"""Find in PyTorch code what goes wrong on several GPUs: `python -m multigpu lint PATH...`."""

import argparse
import ast
import contextlib
import json
import sys
import warnings

from . import source, tokens
from .finding import Finding, Rule
from .fixes import fix, told
from .readings import Reading
from .rules import CHECKS, NOT_PYTHON_3, RULES
from .sarif import sarif
from .scopes import Program
from .source import Source

FOUND, BAD_INPUT = 1, 2
EPILOG = """\
A finding ends with its rule. "# noqa: FL001" at the end of its line silences it, and a word on why belongs beside it;
"# noqa" alone silences all, a line "# multigpu: noqa: FL002" one rule in the whole file. A file that is not Python 3
is searched by token, and reported as FL000.
The exit code is 0 for clean code, 1 when something was found, 2 when a path cannot be read.
"""


def main(argv: list[str] | None = None) -> int:
    """Find what goes wrong on several GPUs in Python files, notebooks, or folders of them."""
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
        help="a .py or .ipynb file, or a folder (default: none, which is enough for --rules)",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print a list of objects: path, line, rule, message, fix")
    forms.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0, which GitHub and editors read")
    parser.add_argument("--rules", action="store_true", help="print every rule with its reason and its fix")
    parser.add_argument("--fix", action="store_true", help="first repair what one word repairs, in .py files")
    options = parser.parse_args(argv)
    if options.rules:
        print("\n".join(f"{rule.code} {rule.name}: {rule.reason}\n      {rule.fix}" for rule in RULES.values()))
        return 0
    if not options.paths:
        parser.error("give a PATH to lint")
    if options.fix:
        _fix_paths(options.paths)
    findings, unread = _lint_paths(options.paths)
    if options.sarif:
        print(sarif(findings, unread))
    elif options.json:
        print(json.dumps([found.to_dict() for found in findings], indent=1))
    else:
        for found in findings:
            print(_told(found))
    for error in unread:
        print(f"error: {error}", file=sys.stderr)
    print(f"{len(findings)} found" if findings else "nothing found", file=sys.stderr)
    return BAD_INPUT if unread else FOUND if findings else 0


def _told(found: Finding) -> str:
    """A finding as the terminal shows it: place, reason, repair, and the failure of the catalogue behind it."""
    see = found.broken.see
    about = f"\n    about: python -m multigpu explain {see}" if see else ""
    return f"{found.where}: {found.message} [{found.rule}]\n    fix: {found.broken.fix}{about}"


def _fix_paths(paths: list[str]) -> None:
    """Write the repairs that are one word, and say each; what cannot be read is told when it is linted."""
    for given in paths:
        with contextlib.suppress(ValueError):
            for path in source.find(given):
                for edit in fix(path):
                    print(told(path, edit), file=sys.stderr)


def _lint_paths(paths: list[str]) -> tuple[list[Finding], list[Exception]]:
    """The findings of all files, and what is wrong with those that cannot be read."""
    findings: list[Finding] = []
    unread: list[Exception] = []
    for given in paths:
        try:
            for path in source.find(given):
                try:
                    findings += lint(source.read(path))
                except (ValueError, OSError) as error:
                    unread.append(error)
        except ValueError as error:
            unread.append(error)
    return findings, unread


def lint(code: Source) -> list[Finding]:
    """All findings of one file that no comment silences, in the order of its lines."""
    found: dict[tuple[int, int, Rule], Finding] = {}
    for first, last, rule, what in _search(code):
        if not code.silences(first, last, rule.code):
            cell, line = code.place(first)
            found.setdefault((cell, line, rule), Finding(code.path, cell, line, rule, what))
    return sorted(found.values())


def lint_text(text: str, path: str = "<text>") -> list[Finding]:
    """All findings in Python code that is at hand as text."""
    return lint(Source(path, text))


def _search(code: Source) -> list[tuple[int, int, Rule, str]]:
    """(first line, last line, rule, what) of everything, silenced or not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash in a string is not what this is about
            reading = Reading(Program(ast.parse(code.text), code.path))
        found = [(node, rule, what) for rule, check in CHECKS.items() for node, what in check(reading)]
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        unread = (line, line, NOT_PYTHON_3, f"not read ({getattr(error, 'msg', error)})")
        return [unread, *((line, line, RULES[rule], what) for line, rule, what in tokens.check(code.text))]
    found.sort(key=lambda each: (each[0].lineno, each[0].col_offset))  # type: ignore[attr-defined]
    return [(node.lineno, node.end_lineno or node.lineno, rule, what) for node, rule, what in found]  # type: ignore[attr-defined]
