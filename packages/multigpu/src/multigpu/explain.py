"""From an error text to its cause and its fix: `python -m multigpu explain "found at least two devices"`."""

import argparse
import codecs
import json
import sys
import textwrap
from pathlib import Path

from multigpu.failures import Failure, catalogue
from multigpu.failures.lookup import Found, look_up
from multigpu.failures.record import record
from multigpu.failures.sentences import quoting
from multigpu.shown import show

NO_MATCH, BAD_INPUT = 1, 2
GUESS = "This text holds no sure sign of an entry. A guess, by its words; paste the whole traceback for an answer:\n"
TOPIC = "This names a topic and not a failure. A guess: it is one of these; name it, or paste the message:\n"
UNKNOWN = 'the catalogue knows nothing about this text; "--list" names all its entries'


def main(argv: list[str] | None = None) -> int:
    """Print the cause and the fix of an error of PyTorch on several GPUs."""
    parser = argparse.ArgumentParser(prog="python -m multigpu explain", description=main.__doc__)
    parser.add_argument(
        "text",
        nargs="*",
        help="an error message, a question in your own words, a file with a log or a traceback, or the name of an "
        "entry of the catalogue; without it, the text is read from standard input",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--list", action="store_true", help="print the name and the title of every entry")
    forms.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: how the entries were found, and of each the cause, check, repair and sources, and "
        "the lines of the text that decided",
    )
    options = parser.parse_args(argv)
    if options.list:
        show("\n".join(f"{entry.id:26}{entry.title} ({entry.mark})" for entry in catalogue()))
        return 0
    try:
        text = _text(" ".join(options.text))
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    if _missing(text):
        print(f"there is no file {text.strip()}", file=sys.stderr)
        return BAD_INPUT
    if not text.strip():
        print('nothing to explain; give an error text in quotes, a file, or "--list"', file=sys.stderr)
        return BAD_INPUT
    found = look_up(text)
    if options.json:
        show(json.dumps(record(found), indent=1, ensure_ascii=False))
        return 0 if found.answered or found.how == "topic" else NO_MATCH
    return _answer(found)


def _text(given: str) -> str:
    if not given:
        piped = getattr(sys.stdin, "buffer", None)  # missing if a program has put a stream of its own there
        return _decoded(piped.read()) if piped is not None else sys.stdin.read()
    # A message can be longer than a file name may be, and hold characters that none may: asking would raise.
    looks_like_file = len(given) < 200 and "\n" not in given and Path(given).is_file()
    return _decoded(Path(given).read_bytes()) if looks_like_file else given


def _decoded(log: bytes) -> str:
    """A log as text, whatever the locale is: UTF-8, or UTF-16 as PowerShell's ">" writes it."""
    if log.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return log.decode("utf-16", errors="replace")
    return log.decode("utf-8-sig", errors="replace")


def _missing(text: str) -> bool:
    """Whether a text without blanks names a file that is not there."""
    name = text.strip()
    return " " not in name and "\n" not in name and name.endswith((".log", ".txt", ".out", ".err"))


def _answer(found: Found) -> int:
    if found.answered:
        guess = [GUESS] if found.how == "guess" else []
        also = [f"also possible: {entry.id}: {entry.title}" for entry in found.entries[1:]]
        show("\n".join([*guess, told(found.entries[0], found.lines[0]), *([""] if also else []), *also]))
        return 0
    if found.how == "topic":
        show("\n".join([TOPIC, *(f"{entry.id:26}{entry.title}" for entry in found.entries)]))
        return 0
    if found.how == "unknown":
        print(UNKNOWN, file=sys.stderr)
        return NO_MATCH
    print("no entry of the catalogue matches. Nearest:", file=sys.stderr)
    for entry in found.entries:
        print(f"  {entry.id}: {entry.title}", file=sys.stderr)
    return NO_MATCH


def told(entry: Failure, decided: tuple[str, ...]) -> str:
    """The text of an entry for the terminal.

    Args:
        entry: the entry.
        decided: the lines of the text that it was found by. What its cause says about their words comes first.
    """
    lines = [f"{entry.id}: {entry.title} [{entry.marks}]"]
    if yours := quoting(entry.cause, decided):
        lines += _labelled("yours", yours)
    lines += _labelled("cause", entry.cause) + (_labelled("check", entry.check) if entry.check else [])
    lines += _labelled("fix", entry.fix)
    if entry.repaired:
        lines += ["", textwrap.indent(entry.repaired.strip(), "      "), ""]
    if entry.helper:
        lines += _labelled("copy", f"python -m frcnn_lite copy {entry.helper}")
    if entry.notebook:
        lines += _labelled("read", f"notebook {entry.notebook}, section {entry.section!r}")
    for thread in entry.threads:
        lines += _labelled("see", f"{thread.cited} {thread.url}")
    return "\n".join(lines)


def _labelled(label: str, text: str) -> list[str]:
    first, rest = f"  {label + ':':8}", " " * 10
    return textwrap.wrap(
        text, 110, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    sys.exit(main())
