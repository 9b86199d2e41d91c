"""Judge the linter on pages that were written by somebody who had not seen its rules.

    python tools/judge_lint.py FOLDER

FOLDER holds Python files, and `expected.tsv`: a line for each fault, with the file's name, the line of the fault and,
in words, what the fault is, between tabs. Whoever writes the pages writes it, before the linter has read them.

A fault is found if the linter points at its line, or at one beside it. The program prints every fault with what the
linter said there, every fault that was missed, and every finding that no fault explains. Whether the words of a finding
name the fault, and whether a finding without a fault is false, is for a reader to say.
"""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

from multigpu.lint import lint, source
from multigpu.lint.finding import Finding

NEAR = 1  # lines between a fault and a finding about it: a call may begin above the argument that is wrong


class Fault(NamedTuple):
    """A fault of a page, as its author told it."""

    page: str
    line: int
    what: str


class Judgement(NamedTuple):
    """The faults with the findings at their lines, and the findings without a fault."""

    found: list[tuple[Fault, list[Finding]]]
    missed: list[Fault]
    other: list[Finding]


def expected(folder: Path) -> list[Fault]:
    """The faults that `expected.tsv` lists.

    Raises:
        ValueError: a line that has not three fields, or names a page or a line that is not there.
    """
    faults = []
    with (folder / "expected.tsv").open(encoding="utf-8", newline="") as file:
        for number, fields in enumerate(csv.reader(file, delimiter="\t"), 1):
            place = f"expected.tsv, line {number}"
            if len(fields) != 3 or not fields[1].isdigit():
                raise ValueError(f"{place} must be a page, a line and words, between tabs; it is {fields}")
            page, line, what = fields[0], int(fields[1]), fields[2]
            lines = len((folder / page).read_text(encoding="utf-8").splitlines()) if (folder / page).is_file() else 0
            if not 1 <= line <= lines:
                raise ValueError(f"{place}: {page} has {lines} lines, so there is no line {line}")
            faults.append(Fault(page, line, what))
    return faults


def judge(folder: Path) -> Judgement:
    """Compare what the linter finds in the pages of a folder with the faults that they are said to have."""
    faults = expected(folder)
    findings = {page.name: lint(source.read(page)) for page in sorted(folder.glob("*.py"))}
    at = {fault: [each for each in findings[fault.page] if abs(each.line - fault.line) <= NEAR] for fault in faults}
    explained = {id(each) for found in at.values() for each in found}
    return Judgement(
        [(fault, found) for fault, found in at.items() if found],
        [fault for fault, found in at.items() if not found],
        [each for of_page in findings.values() for each in of_page if id(each) not in explained],
    )


def main() -> None:
    """Print the judgement of a folder."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    told = judge(Path(sys.argv[1]))
    for fault, findings in told.found:
        print(f"found   {fault.page}:{fault.line}: {fault.what}")
        print("\n".join(f"        {each.rule} {each.what}" for each in findings))
    for fault in told.missed:
        print(f"missed  {fault.page}:{fault.line}: {fault.what}")
    for each in told.other:
        print(f"other   {each.where}: {each.rule} {each.what}")
    print(f"{len(told.found)} found, {len(told.missed)} missed, {len(told.other)} findings without a fault")


if __name__ == "__main__":
    main()
