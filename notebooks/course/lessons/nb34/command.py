"""Write a program with ten bugs to repair, or judge one that somebody has repaired.

    python -m course capstone 7                        # writes ten_bugs_7.py, and says what is wrong with it
    python -m course capstone check ten_bugs_7.py      # says which of the ten are repaired

Checking runs functions and classes of that file, with your rights, so check only what you have read. Nothing else of
the file is run: neither its imports nor its `main`.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from course.kit.setup import setup
from course.lessons.nb34.bugs import KINDS, RIGHT, Kind
from course.lessons.nb34.desk import first_wrong
from course.lessons.nb34.plant import chosen, definitions, edited, graft, plant
from frcnn_lite.whole_file import whole_file

HEAD = "# Ten bugs, program {seed}. To judge it: python -m course capstone check {name}"
SEED = re.compile(r"\A# Ten bugs, program (\d+)\.")


def write(seed: int, path: Path, *, replace: bool = False) -> list[str]:
    """Write the program of a seed; its symptoms, which the file begins with as comments.

    Raises FileExistsError where there is a file and `replace` is False.
    """
    if path.exists() and not replace:
        raise FileExistsError(f"{path} exists already, and may hold your repairs; --overwrite replaces it")
    text = plant(seed)
    told = [f"{number}. {kind.title}: {_symptom(kind, seed)}" for number, kind in enumerate(KINDS, 1)]
    head = [HEAD.format(seed=seed, name=path.name), "#", *(f"# {line}" for line in told)]
    with whole_file(path, replace=replace) as partial:
        partial.write_text("\n".join([*head, "", text]), encoding="utf-8")
    return told


def _symptom(kind: Kind, seed: int) -> str:
    """That of this bug alone: in the whole program one that raises would hide others."""
    found = first_wrong(kind, edited(RIGHT, chosen(seed)[kind].edits))
    return "" if found is None else found.words


def judge_file(text: str) -> dict[Kind, str]:
    """For each kind what is still wrong, "" where it is repaired. Runs functions and classes of the text.

    Raises ValueError where the text does not begin as `write` has written it, and SyntaxError.
    """
    head = SEED.match(text)
    if head is None:
        raise ValueError(f"the first line has to be the one that was written, {HEAD.format(seed='N', name='FILE')!r}")
    seed = int(head[1])
    own, planted = definitions(text), definitions(plant(seed))
    homes = {name for kind in KINDS for name in kind.homes}
    shared = {name: part for name, part in own.items() if name not in homes and part != planted.get(name)}
    return {kind: _judge(kind, own, shared, seed) for kind in KINDS}


def _judge(kind: Kind, own: dict[str, str], shared: dict[str, str], seed: int) -> str:
    missing = [name for name in kind.homes if name not in own]
    if missing:
        return f"the file has no `{missing[0]}`"
    base = edited(RIGHT, chosen(seed)[kind].edits)
    found = first_wrong(kind, graft(base, {**shared, **{name: own[name] for name in kind.homes}}))
    return "" if found is None else found.words


def _say(verdicts: dict[Kind, str], seed: int) -> None:
    for number, (kind, words) in enumerate(verdicts.items(), 1):
        print(f"{number:2}. {'✔' if not words else '✗'} {kind.title}{': ' + words if words else ''}")
        if not words:
            print(f"      {chosen(seed)[kind].told} (notebook {' and '.join(kind.notebooks)})")
    print(f"{sum(not words for words in verdicts.values())} of {len(KINDS)} are repaired.")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where a program was written or all ten are repaired, 1 where some are not, 2 for what cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m course capstone", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", metavar="SEED", help="a whole number, or the word check")
    parser.add_argument(
        "file", nargs="?", type=Path, help="what to check, or a name to write to in place of ten_bugs_SEED.py"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there already")
    given = parser.parse_args(arguments)
    if given.what != "check" and not re.fullmatch(r"\d+", given.what):
        parser.error(f"SEED must be a whole number from 0, or the word check, got {given.what!r}")
    if given.what == "check" and given.file is None:
        parser.error("check needs the file")
    try:
        return _check(given.file) if given.what == "check" else _write(int(given.what), given.file, given.overwrite)
    except (OSError, ValueError, SyntaxError) as error:  # bytes that are no text are a ValueError
        parser.exit(2, f"{error}\n")


def _write(seed: int, file: Path | None, overwrite: bool) -> int:
    path = file or Path(f"ten_bugs_{seed}.py")
    if path.exists() and not overwrite:  # before anything runs
        raise FileExistsError(f"{path} exists already, and may hold your repairs; --overwrite replaces it")
    setup(gpus=2)
    print(*write(seed, path, replace=overwrite), f"{path}: written.", sep="\n")
    return 0


def _check(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    print(f"Functions and classes of {path} are run now, and nothing else of it.")
    setup(gpus=2)
    verdicts = judge_file(text)
    head = SEED.match(text)
    assert head is not None
    _say(verdicts, int(head[1]))
    return int(any(verdicts.values()))
