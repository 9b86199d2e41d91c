"""An einsum equation drawn: letters with their sizes and fates, and the loops it stands for; live, with a text box."""

from collections.abc import Sequence
from html import escape
from string import ascii_uppercase
from typing import Any

import numpy as np

from course.kit import live
from course.kit.figures.palette import KIND_COLOURS, WRONG_COLOUR, blend, ink_on
from course.kit.figures.svg import FAINT, Canvas, Figure
from course.lessons.nb25.einsum_explain import EinsumReading, Index, explain

TILE, LINE, TOP, LEFT = 44, 19, 52, 18
MONO = "'DejaVu Sans Mono', 'Noto Sans Mono', Consolas, monospace"


def einsum_reading(reading: EinsumReading) -> Figure:
    """Operands and result as rows of lettered tiles; light ones are summed away, and a rim marks a stretched 1."""
    loops = reading.loop_nest().splitlines()[1:]
    rows = len(reading.terms) + 1
    width = max(LEFT + 210 + 7.9 * max(map(len, loops)), 640)
    loops_x = max(LEFT + 60 + TILE * max(map(len, (*reading.terms, reading.output))) + 40, 260)
    canvas = Canvas(
        max(width, loops_x + 7.9 * max(map(len, loops)) + LEFT),
        TOP + max(rows * (TILE + 12), (len(loops) + 1) * LINE) + 40,
        f"einsum {reading.equation}",
        reading.read_aloud().replace("\n", ";").replace("  ", " "),
    )
    canvas.text(LEFT, 28, f"einsum('{reading.equation}', …)", size=16, font_weight="bold")
    fates = {index.name: index for index in reading.indices}
    for k, (term, shape) in enumerate(zip(reading.terms, reading.shapes, strict=True)):
        _tiles(canvas, ascii_uppercase[k], term, shape, TOP + k * (TILE + 12), fates, k)
    _tiles(canvas, "out", reading.output, reading.output_shape, TOP + (rows - 1) * (TILE + 12), fates, None)
    for n, line in enumerate(loops):
        canvas.text(loops_x, TOP + 16 + n * LINE, line[4:].replace(" ", "\u00a0"), font_family=MONO, font_size=13)
    cost = f"{reading.multiply_adds:,} turns of the innermost loop"
    canvas.text(loops_x, TOP + 26 + len(loops) * LINE, cost, size=12, fill=FAINT)
    return canvas.figure()


def _tiles(
    canvas: Canvas,
    name: str,
    letters: str,
    shape: Sequence[int],
    y: float,
    fates: dict[str, Index],
    operand: int | None,
) -> None:
    canvas.text(LEFT, y + TILE / 2 + 5, name, font_weight="bold")
    if not letters:
        canvas.text(LEFT + 50, y + TILE / 2 + 5, "one number", fill=FAINT)
    for j, (letter, size) in enumerate(zip(letters, shape, strict=True)):
        index, x = fates[letter], LEFT + 50 + j * TILE
        colour = KIND_COLOURS[5] if index.summed else blend(KIND_COLOURS[0], 0.85)
        stretched = operand in index.stretched
        rim = {"stroke": WRONG_COLOUR, "stroke_width": 4} if stretched else {}
        canvas.rect(x + 2, y + 2, TILE - 4, TILE - 4, fill=colour, rx=5, **rim)
        canvas.text(x + TILE / 2, y + 21, letter, size=16, anchor="middle", fill=ink_on(colour), font_weight="bold")
        canvas.text(x + TILE / 2, y + 36, size, size=11, anchor="middle", fill=ink_on(colour))


class EinsumBox:
    """Two text boxes, equation and shapes, over `einsum_reading`; a mistake is answered in words."""

    def __init__(self, equation: str, *shapes: tuple[int, ...]) -> None:
        import ipywidgets

        self.equation = ipywidgets.Text(value=equation, description="equation", continuous_update=False)
        self.shapes = ipywidgets.Text(
            value="; ".join(", ".join(map(str, shape)) for shape in shapes),
            description="shapes",
            continuous_update=False,
        )
        self.picture, self.words = ipywidgets.HTML(), ipywidgets.HTML()
        self._redraw()
        for box in (self.equation, self.shapes):
            box.observe(self._redraw, names="value")
        self.widget = live.box([self.equation, self.shapes], [self.picture, self.words])

    def _redraw(self, _change: Any = None) -> None:
        try:
            shapes = parse_shapes(self.shapes.value)
            reading = explain(self.equation.value, *shapes)
        except ValueError as error:
            self.words.value = f'<p aria-live="polite">{escape(str(error))}</p>'
            return
        self.picture.value = einsum_reading(reading).markup
        self.words.value = f'<pre aria-live="polite">{escape(reading.read_aloud())}{escape(_path(reading))}</pre>'

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, Any]:
        text = "Live in JupyterLab: boxes for an equation and its shapes. The figure above is one of its frames."
        return {**self.widget._repr_mimebundle_(**formats), "text/plain": text}


def parse_shapes(words: str) -> list[tuple[int, ...]]:
    """`"2, 3; 3, 4"` -> [(2, 3), (3, 4)]; an empty part is the shape of a number, ()."""
    try:
        shapes = [tuple(int(size) for size in part.split(",") if size.strip()) for part in words.split(";")]
    except ValueError:
        raise ValueError(f"`shapes`: expected whole numbers like 2, 3; 3, 4, got {words!r}") from None
    if any(size < 1 for shape in shapes for size in shape):
        raise ValueError(f"`shapes`: expected sizes of 1 or more, got {words!r}")
    return shapes


def _path(reading: EinsumReading) -> str:
    """The cheapest order of pairs, where there is a choice and NumPy can try all of them."""
    if not 3 <= len(reading.terms) <= 6:
        return ""
    operands = [np.broadcast_to(0.0, shape) for shape in reading.shapes]  # the shapes are all that is looked at
    _, report = np.einsum_path(reading.equation, *operands, optimize="optimal")
    return f"\n\ncheapest in pairs, by numpy.einsum_path:\n{report}"
