"""Precision over recall of every class: as the detections are ranked, and as COCO reads it off at 101 recalls."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure
from frcnn_lite.engine.average_precision import ClassCurve

LEFT, TOP, GAP, NAME, FOOT = 40, 76, 30, 40, 34
# Row of `engine.average_precision.ClassCurve` and colour of each.
SHOWN = {"AP50": (0, KIND_COLOURS[0]), "AP75": (5, KIND_COLOURS[4])}
KEY = "filled: the best precision at this recall or beyond, read at 101 recalls; its area is AP. Thin: as ranked"


def precision_recall(
    curves: Mapping[str, ClassCurve],
    title: str = "Precision over recall",
    columns: int = 4,
    side: int = 150,
    only: Collection[str] | None = None,
) -> Figure:
    """A panel for the mean of all classes and one for each, or for those in `only`, at an IoU of 0.5 and of 0.75.

    curves: what `engine.class_curves` gives; side: pixels of a panel.
    """
    panels = {name: (curve.precision, curve.ranked) for name, curve in curves.items()}
    if len(panels) > 1:
        mean = torch.stack([precision for precision, _ in panels.values()]).mean(dim=0)
        kept = {name: panel for name, panel in panels.items() if only is None or name in only}
        panels = {"all classes": (mean, mean.new_zeros(len(mean), 0, 2)), **kept}
    rows = -(-len(panels) // columns)
    size = LEFT + columns * (side + GAP), TOP + rows * (NAME + side + FOOT)
    words = "; ".join(f"{name}: {', '.join(_numbers(precision))}" for name, (precision, _) in panels.items())
    canvas = Canvas(max(size[0], 680), size[1], title, f"{words or 'No class has an object'}.", at=(16, 26))
    canvas.text(16, 50, KEY, size=12, fill=FAINT)
    for k, (name, (precision, ranked)) in enumerate(panels.items()):
        x, y = LEFT + k % columns * (side + GAP), TOP + k // columns * (NAME + side + FOOT)
        canvas.text(x, y + 14, name, font_weight="bold")
        _draw_axes(canvas, x, y + NAME, side)
        for number, (words, (row, colour)) in enumerate(zip(_numbers(precision), SHOWN.values(), strict=True)):
            canvas.rect(x + number * side / 2, y + 22, 9, 9, fill=colour)
            canvas.text(x + number * side / 2 + 13, y + 31, words, size=11)
            corners = _placed(staircase(precision[row].tolist()), x, y + NAME, side)
            canvas.polyline(corners, fill=blend(colour, 0.2), stroke="none")
            canvas.polyline(corners[1:-1], stroke=colour, stroke_width=1.8)
            points = _placed(ranked[row][~ranked[row, :, 0].isnan()].tolist(), x, y + NAME, side)
            canvas.polyline(points, stroke=colour, stroke_width=0.8)
    return canvas.figure()


def staircase(precision: Sequence[float]) -> list[tuple[float, float]]:
    """Corners (recall, precision) of columns of equal width, one a value, so that the area below is their mean."""
    n = len(precision)
    ends = [0, *(k for k in range(1, n) if precision[k] != precision[k - 1]), n]
    tops = [(edge / n, precision[start]) for start, end in pairwise(ends) for edge in (start, end)]
    return [(0.0, 0.0), *tops, (1.0, 0.0)]


def _numbers(precision: Tensor) -> list[str]:
    return [f"{name} {float(precision[row].mean()):.2f}" for name, (row, _) in SHOWN.items()]


def _placed(points: Sequence[Sequence[float]], x: float, y: float, side: float) -> list[tuple[float, float]]:
    """On the canvas, those that fall on the same tenth of a pixel once."""
    return list(dict.fromkeys((round(x + side * r, 1), round(y + side * (1 - p), 1)) for r, p in points))


def _draw_axes(canvas: Canvas, x: float, y: float, side: float) -> None:
    for share in (0, 0.5, 1):
        canvas.line(x, y + side * share, x + side, y + side * share, stroke=RULE)
        canvas.line(x + side * share, y, x + side * share, y + side, stroke=RULE)
        canvas.text(x - 5, y + side * (1 - share) + 4, f"{share:g}", size=11, anchor="end", fill=FAINT)
        canvas.text(x + side * share, y + side + 14, f"{share:g}", size=11, anchor="middle", fill=FAINT)
