"""Two tables of docs/results.md, written from results on versions of torch: of the tests, of PyTorch's tables.

In packages/vgpu:
python tools/compatibility.py --run             test the torch that is installed, and write its column
python tools/compatibility.py a.xml b.xml       columns from `pytest --junitxml=a.xml`
python tools/compatibility.py 2.13.0+cpu=c.xml  of a file that does not say which torch it was (pytest-xdist's)
python tools/compatibility.py d.txt             columns from `python tools/oracle.py > d.txt`

The tables are where results are kept: what the given files do not hold, other versions or other rows, stays as it is.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]
DOCUMENT = PACKAGE / "docs" / "results.md"
PREFIX = "test_vgpu_"
TESTS, TABLES = "tests", "tables"  # the names of the two tables
TOTAL = "**all**"
# What the scripts of oracle.py print of themselves, and what a reader is told of it.
SCRIPTS = {
    "float32": "operators (OpInfo), float32",
    "float64": "operators (OpInfo), float64",
    "complex64": "operators (OpInfo), complex64",
    "check_module": "modules (module_db): outputs, gradients, devices",
    "check_optimizer": "optimizers (optim_db): three steps, every configuration",
    "one tensor on cpu": "one tensor on the CPU: raises where a GPU does",
    "one tensor on cuda:0": "one tensor on another GPU: raises where a GPU does",
}


class Counts(NamedTuple):
    """Tests of one file on one version of torch."""

    passed: int = 0
    skipped: int = 0
    failed: int = 0

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed}{skipped}" + (f", **{self.failed} failed**" if self.failed else "")

    @classmethod
    def parse(cls, cell: str) -> Counts:
        """The inverse of `str`."""
        found = re.fullmatch(r"(\d+)(?:, (\d+) skipped)?(?:, \*\*(\d+) failed\*\*)?", cell)
        if found is None:
            raise ValueError(f"no cell of the table: {cell!r}")
        return cls(*(int(number or 0) for number in found.groups()))


Columns = dict[str, dict[str, str]]  # version of torch -> row -> cell


def areas() -> list[str]:
    """What the rows of the first table are named for: the test files of the package."""
    return sorted(path.stem.removeprefix(PREFIX) for path in (PACKAGE / "tests").glob(f"{PREFIX}*.py"))


def read_tests(path: Path) -> Columns:
    """The column of a junit xml file of pytest; its version is "" where the file does not name it."""
    root = ElementTree.parse(path).getroot()
    version = next((p.get("value") for p in root.iter("property") if p.get("name") == "torch"), None)
    numbers: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for case in root.iter("testcase"):
        area = re.search(rf"\b{PREFIX}(\w+)", f"{case.get('classname')}.{case.get('name')}")
        if area is not None:
            outcomes = {child.tag for child in case}
            numbers[area[1]][2 if outcomes & {"failure", "error"} else 1 if "skipped" in outcomes else 0] += 1
    return {version or "": {f"`{area}`": str(Counts(*three)) for area, three in numbers.items()}}


def read_tables(text: str) -> Columns:
    """The columns of what oracle.py has printed."""
    columns: Columns = {}
    for version, script, cell in re.findall(r"^torch ([^\s,]+), ([^\n]+?): (\d+ of \d+)", text, re.MULTILINE):
        columns.setdefault(version, {})[SCRIPTS[script]] = cell
    return columns


def read_written(text: str, table: str) -> Columns:
    """The columns of one table of the document."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _between(text, table).splitlines()]
    columns: Columns = {version: {} for version in lines[0][1:]} if lines else {}
    for row, *cells in lines[2:]:
        for version, cell in zip(columns, cells, strict=True):
            if cell != "-" and row != TOTAL:
                columns[version][row] = cell
    return columns


def write(text: str, table: str, columns: Columns) -> str:
    """The document with `columns` in one of its tables."""
    versions = sorted(columns, key=lambda version: [int(number) for number in re.findall(r"\d+", version)[:3]])
    names = [f"`{area}`" for area in areas()] if table == TESTS else list(SCRIPTS.values())
    rows = [["", *versions], ["---"] * (1 + len(versions))]
    rows += [[name, *(columns[version].get(name, "-") for version in versions)] for name in names]
    if table == TESTS:
        parsed = [[Counts.parse(columns[v][name]) for name in names if name in columns[v]] for v in versions]
        rows.append([TOTAL, *(str(Counts(*map(sum, zip(*column, strict=True)))) for column in parsed)])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    begin, end = _marks(table)
    return text.replace(begin + _between(text, table) + end, begin + lines + end)


def _marks(table: str) -> tuple[str, str]:
    return f"<!-- {table}: written by tools/compatibility.py -->\n", f"<!-- end of {table} -->\n"


def _between(text: str, table: str) -> str:
    begin, end = _marks(table)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the document must have one {begin.strip()!r} and one {end.strip()!r}")
    return text.partition(begin)[2].partition(end)[0]


def run_tests(results: Path) -> None:
    """Run the tests on the torch that is installed."""
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={results}"]
    subprocess.run(command, cwd=PACKAGE)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", metavar="[VERSION=]FILE")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    text = options.document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        if options.run:
            options.results.append(str(Path(folder) / "results.xml"))
            run_tests(Path(options.results[-1]))
        for given in options.results:
            named, _, path = given.rpartition("=")
            table = TESTS if path.endswith(".xml") else TABLES
            found = read_tests(Path(path)) if table == TESTS else read_tables(Path(path).read_text(encoding="utf-8"))
            columns = read_written(text, table)
            for version, column in found.items():
                if not (named or version) or not column:
                    parser.error(f"{path} names no torch, or holds no test of this package: write VERSION={path}")
                columns.setdefault(named or version, {}).update(column)
            text = write(text, table, columns)
    options.document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
