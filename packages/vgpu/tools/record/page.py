"""docs/hardware.md: how often virtual GPUs answer as real ones do, and each row in which they do not."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from record import compare
from record.files import Record, of_hardware

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hardware.md"
QUESTIONS = {
    "dtype": "runs for a dtype, and what comes back",
    "mixed": "one tensor on the CPU",
    "strict": "deterministic algorithms",
    "cast": "autocast",
    "sync": "waits for the device",
    "backward": "backward",
    "program": "small programs",
}
_TYPES = re.compile(
    r"\b(?:b?float\d+|complex\d+|u?int\d+|bool|BFloat16|Float|Half|Double|Complex\w+|Short|Int|Long|Char|Byte|Bool)\b"
)
_START = "Expected all tensors to be on the same device, but "


def write(virtual: Record) -> None:
    """Write the page from the records beside the tests and one of a virtual GPU."""
    PAGE.write_text(text(of_hardware(), virtual), encoding="utf-8")


def text(cards: list[Record], virtual: Record) -> str:
    """The page."""
    parts = [_INTRODUCTION]
    for card in cards:
        found = compare.differences(card, virtual.answers)
        about = card.about
        parts.append(
            f"## {about['card']}, torch {about['torch']}, {about['date']}\n\n"
            f"{len(card.answers):,} answers of the card, {len(found):,} of which virtual GPUs were asked, too, "
            f"on torch {virtual.about['torch']}.\n\n{_table(found)}\n\n{_listed(card, virtual, found)}\n"
        )
    return "\n".join(parts)


def rows(card: Record, virtual: Record) -> list[str]:
    """Every row that differs, a line each: its key, what the card says and what a virtual GPU says."""
    found = compare.differences(card, virtual.answers)
    return [
        f"{kind}\t{key}\t{card.answers[key]}\t{virtual.answers[key]}"
        for key, kind in sorted(found.items())
        if kind != compare.SAME
    ]


def _table(found: dict[str, str]) -> str:
    counts = {question: Counter[str]() for question in QUESTIONS}
    for key, kind in found.items():
        counts[key.split("|")[1]][kind] += 1
    total = sum(counts.values(), Counter())
    head = ["", *QUESTIONS.values(), "**all**"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for kind in compare.KINDS:
        lines.append([kind, *(f"{c[kind]:,}" for c in counts.values()), _share(total, kind)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(total: Counter[str], kind: str) -> str:
    return f"**{total[kind]:,}** ({total[kind] / total.total():.2%})"


def _listed(card: Record, virtual: Record, found: dict[str, str]) -> str:
    """The rows that differ, by reason; those of an operator that differ in a dtype's name alone are one line."""
    by_reason: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, kind in sorted(found.items()):
        if kind == compare.SAME:
            continue
        operator, question, argument = key.split("|")
        said = (_short(card.answers[key]), _short(virtual.answers[key]))
        reason = "Numbers that are drawn, or the order of a set" if kind == compare.DRAWN else compare.why(key)
        by_reason[reason or "No reason is known yet"][kind, operator, question, *said].append(argument)
    parts = []
    for reason, lines in by_reason.items():
        parts.append(f"### {reason}\n\n| kind | operator | question | there | here |\n|---|---|---|---|---|")
        for (kind, operator, question, there, here), arguments in lines.items():
            asked = f"{question}: {', '.join(arguments)}"
            parts.append(f"| {kind.partition(':')[0]} | `{operator}` | {asked} | {there} | {here} |")
        parts.append("")
    return "\n".join(parts)


def _short(answer: str) -> str:
    """An answer without the names of dtypes, as one cell of a table."""
    return _TYPES.sub("T", answer.replace(_START, ""))[:110].replace("|", "/").replace("<", "&lt;")


_INTRODUCTION = """\
# What hardware says, and what virtual GPUs say

<!-- written by `python -m record page`, in packages/vgpu/tools -->
A real GPU was asked every operator of PyTorch's own test tables. Does it run for this dtype, with one tensor on the
CPU, under deterministic algorithms, under autocast? Does it wait for the device, and does its backward run? What came
back, values excepted, was kept: dtype, shape and strides, or the type and the first lines of the error. It has also
run small programs (`tools/record/programs.toml` and `whole_programs.py`), which are about conversions, memory, streams,
random numbers, attention, optimizers and files, and what they said was kept. Virtual GPUs are asked the same, and the
tables count how often they answer the same. The records are beside the tests (`tests/hardware/*.jsonl.gz`). `make test`
asks a sample, and `make test ARGS=--all` and `make oracle` ask all.

**To add a card**, on a machine with a GPU, in `packages/vgpu/tools`: `python -m record ask
../tests/hardware/NAME.jsonl.gz` (ten minutes; it needs `expecttest`). Then `python -m record ask FILE --virtual` on
the same version of PyTorch, and `python -m record page FILE`.
"""
