"""Find in PyTorch code what goes wrong on several GPUs: `python -m multigpu lint PATH...`."""

import argparse
import ast
import json
import sys
import warnings

from . import closures, devices, source, syncs, tensors, tokens
from .finding import RULES, Finding
from .scopes import Program
from .source import Source

FOUND, BAD_INPUT = 1, 2
FAMILIES = (devices, tensors, closures, syncs)
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
    parser.add_argument("--json", action="store_true", help="print a list of objects: path, line, rule, message, fix")
    parser.add_argument("--rules", action="store_true", help="print every rule with its reason and its fix")
    options = parser.parse_args(argv)
    if options.rules:
        print("\n".join(f"{code} {rule.name}: {rule.reason}\n      {rule.fix}" for code, rule in RULES.items()))
        return 0
    if not options.paths:
        parser.error("give a PATH to lint")
    findings, unread = _lint_paths(options.paths)
    if options.json:
        print(json.dumps([found.to_dict() for found in findings], indent=1))
    else:
        for found in findings:
            print(f"{found.where}: {found.message} [{found.rule}]\n    fix: {RULES[found.rule].fix}")
    for error in unread:
        print(f"error: {error}", file=sys.stderr)
    print(f"{len(findings)} found" if findings else "nothing found", file=sys.stderr)
    return BAD_INPUT if unread else FOUND if findings else 0


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
    found: dict[tuple[int, int, str], Finding] = {}
    for first, last, rule, what in _search(code):
        if not code.silences(first, last, rule):
            cell, line = code.place(first)
            found.setdefault((cell, line, rule), Finding(code.path, cell, line, rule, what))
    return sorted(found.values())


def lint_text(text: str, path: str = "<text>") -> list[Finding]:
    """All findings in Python code that is at hand as text."""
    return lint(Source(path, text))


def _search(code: Source) -> list[tuple[int, int, str, str]]:
    """(first line, last line, rule, what) of everything, silenced or not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash in a string is not what this is about
            program = Program(ast.parse(code.text), code.path)
        return [
            (node.lineno, node.end_lineno or node.lineno, rule, what)  # type: ignore[attr-defined]
            for family in FAMILIES
            for node, rule, what in family.check(program)
        ]
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        unread = (line, line, "FL000", f"not read ({getattr(error, 'msg', error)})")
        return [unread, *((line, line, rule, what) for line, rule, what in tokens.check(code.text))]
