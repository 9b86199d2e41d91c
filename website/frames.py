"""Sliders that move without a kernel: the figures that they can show, drawn when the site is built.

The cells of a notebook up to a slider are run in a kernel. There the function that the slider calls draws its figure
for every combination of some values of each slider, so what the site shows is what JupyterLab shows.
"""

import ast
import base64
import gzip
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.kit.figures.svg import Figure
from course.kit.files import NOTEBOOKS
from course.tools.store import run
from website.layout import ROOT

MOST = 1300  # figures of a slider cell; with more combinations each slider takes fewer of its values
TESTS = NOTEBOOKS / "course" / "tests"  # draw nothing
ROUND = 50  # a range whose ends lie further apart than this factor is divided by equal factors


def of_notebook(nb: NotebookNode, cache: Path) -> dict[int, dict[str, Any]]:
    """The frames of each cell that shows sliders, by its position; those that `cache` has are not drawn again."""
    found = {}
    for position, cell in enumerate(nb.cells):
        call = sliders_call(cell.source) if "widget" in cell.metadata.get("tags", []) else None
        if call is None:
            continue
        key = digest(nb.cells[: position + 1])
        stored = cache / f"{key}.json"
        if not stored.exists():
            cache.mkdir(parents=True, exist_ok=True)
            stored.write_text(drawn(nb.cells[:position], call), encoding="utf-8")
        found[position] = json.loads(stored.read_text(encoding="utf-8"))
    return found


def script(name: str, drawn: dict[str, Any]) -> str:
    """The frames as a script, because a page that is opened as a file may not fetch data. Packed they are a tenth."""
    packed = base64.b64encode(gzip.compress(json.dumps(drawn).encode(), mtime=0)).decode()
    return f"(window.frames_of ??= {{}})[{json.dumps(name)}] = {json.dumps(packed)}\n"


def sliders_call(source: str) -> str | None:
    """The cell's `figures.sliders(draw, rows=(1, 32, 10))` as a call of `print_frames`; None where it is none."""
    last = ast.parse(source).body[-1]
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return None
    if ast.unparse(last.value.func) != "figures.sliders":
        return None
    last.value.func = ast.Name("print_frames")
    return ast.unparse(last)


def digest(cells: list[NotebookNode]) -> str:
    """What the frames are a function of: the cells up to the slider, and the course without its tests."""
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    course = [path for path in sorted((NOTEBOOKS / "course").glob("**/*.py")) if TESTS not in path.parents]
    sources += [path.read_text(encoding="utf-8") for path in course]
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:16]


def drawn(before: list[NotebookNode], call: str) -> str:
    """Run the cells before a slider, and then the call that prints its frames; what it printed."""
    last = nbformat.v4.new_code_cell(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom website.frames import print_frames\n{call}"
    )
    nb = nbformat.v4.new_notebook(cells=[*before, last])
    run(nb, NOTEBOOKS)
    return "".join(output.text for output in last.outputs if output.get("name") == "stdout")


def print_frames(draw: Callable[..., Figure], **ranges: tuple[int, int, int]) -> None:
    """In the kernel: draw every combination of the sliders' values, and print what the page needs, as JSON.

    A figure is a list of numbers of lines, since most lines of two figures are the same.
    """
    chosen = values(ranges)
    lines: dict[str, int] = {}
    frames, words = [], []
    for combination in itertools.product(*chosen.values()):
        figure = draw(**dict(zip(chosen, combination, strict=True)))
        frames.append([lines.setdefault(line, len(lines)) for line in figure.markup.split("\n")])
        words.append(figure.description)
    sliders = [{"name": name, "values": chosen[name], "start": ranges[name][2]} for name in ranges]
    print(json.dumps({"sliders": sliders, "lines": list(lines), "frames": frames, "words": words}))


def values(ranges: Mapping[str, tuple[int, int, int]]) -> dict[str, list[int]]:
    """The values that each slider has on the site: all of them, or as many as leave at most MOST combinations."""
    counts = {name: high - low + 1 for name, (low, high, _) in ranges.items()}
    while math.prod(counts.values()) > MOST:
        longest = max(counts, key=counts.__getitem__)
        counts[longest] -= 1
    return {name: spread(*ranges[name], counts[name]) for name in ranges}


def spread(low: int, high: int, start: int, count: int) -> list[int]:
    """About `count` whole numbers from `low` to `high`, with both ends and `start` among them."""
    if count > high - low:
        return list(range(low, high + 1))
    shares = [k / max(1, count - 1) for k in range(count)]
    if low > 0 and high / low > ROUND:
        between = [round(low * (high / low) ** share) for share in shares]
    else:
        between = [round(low + (high - low) * share) for share in shares]
    nearest = min(range(1, len(between) - 1), key=lambda k: abs(between[k] - start), default=0)
    if start not in between and nearest:
        between[nearest] = start
    return sorted({low, *between, high, start})
