"""The command of the record; the package's docstring says how it is called."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from record import compare, files, page, programs, questions

PARTS = ("operators", "programs")


def main(argv: list[str] | None = None) -> int:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m record", description="what a GPU answers, and what virtual ones do"
    )
    parser.add_argument("command", choices=("ask", "page", "differ", "check", "child"))
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--virtual", action="store_true", help="ask a virtual GPU")
    parser.add_argument("--part", choices=PARTS, default="operators", help=argparse.SUPPRESS)
    parser.add_argument("--from", type=int, default=0, dest="start", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.command == "child":
        return child(options.part, options.start, options.virtual)
    if options.command == "ask":
        files.write(options.file, ask(options.virtual))
    elif options.command == "page":
        page.write(files.read(options.file))
    elif options.command == "differ":
        print(*page.rows(files.of_hardware()[0], files.read(options.file)), sep="\n")
    else:
        return check()
    return 0


def check() -> int:
    """Ask a virtual GPU all questions of all cards, and print the rows that differ without a reason."""
    virtual = ask(virtual=True)
    unexplained = [line for card in files.of_hardware() for line in compare.unexplained(card, virtual.answers)]
    print(*unexplained, f"torch {torch.__version__}, rows that differ without a reason: {len(unexplained)}", sep="\n")
    return min(len(unexplained), 1)


def ask(virtual: bool) -> files.Record:
    """Ask all operators and all programs."""
    about = {"torch": torch.__version__, "date": datetime.date.today().isoformat()}
    about["card"] = "virtual" if virtual else torch.cuda.get_device_name()
    return files.Record(about, {key: answer for part in PARTS for key, answer in _answers(part, virtual)})


def _answers(part: str, virtual: bool) -> Iterator[tuple[str, str]]:
    """The answers to one part, from a process that is started anew wherever an answer has ended its context."""
    place, count = 0, len(_asked(part))
    while place < count:
        for last, key, answer in _from_child(part, place, virtual):
            yield key, answer
            place = last
        place += 1
        print(f"{place} of {count} {part}", file=sys.stderr)


def _from_child(part: str, start: int, virtual: bool) -> Iterator[tuple[int, str, str]]:
    command = [sys.executable, "-m", "record", "child", "-", "--part", part, "--from", str(start)]
    with subprocess.Popen([*command, *["--virtual"] * virtual], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield tuple(json.loads(line))  # type: ignore[misc]


def _asked(part: str) -> dict[str, Any]:
    return questions.operators() if part == "operators" else programs.programs()


def child(part: str, start: int, virtual: bool) -> int:
    """Print the answers to a part from one place on, until one of them ends the context."""
    if virtual:
        import vgpu

        vgpu.enable(1, force=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if part == "programs":
        programs.begin()
    for place, (name, asked) in enumerate(_asked(part).items()):
        if place < start:
            continue
        for key, answer in questions.ask(asked) if part == "operators" else [(name, programs.ask(asked))]:
            print(json.dumps([place, key, answer]), flush=True)
            if answer.startswith("DEAD"):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
