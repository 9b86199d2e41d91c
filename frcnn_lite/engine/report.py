"""Figures of a judged detector, by matplotlib: precision over recall, and its confusion matrix.

`figure.savefig("curves.svg")` saves one.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from frcnn_lite.engine.average_precision import ClassCurve
from frcnn_lite.engine.confusion import IOU, ConfusionMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
SIDE = 2.4  # inches of a panel
CELL = 0.45  # inches of a side of a matrix's cell
SHOWN = {"AP50": (0, "#0072b2"), "AP75": (5, "#d55e00")}  # row of `ClassCurve`, colour (Okabe and Ito)


def precision_recall(curves: Mapping[str, ClassCurve]) -> "Figure":
    """A panel for the mean of all classes and one for each, at an IoU of 0.5 and of 0.75.

    The filled line is the best precision at this recall or beyond, which COCO reads at 101 recalls: the area under it
    is AP. The thin line is precision and recall as the detections are ranked.

    Args:
        curves: what `engine.class_curves` gives, by name of the class.
    """
    panels = {name: (curve.precision, curve.ranked) for name, curve in curves.items()}
    if len(panels) > 1:
        mean = torch.stack([precision for precision, _ in panels.values()]).mean(dim=0)
        panels = {"all classes": (mean, mean.new_zeros(len(mean), 0, 2)), **panels}
    figure, axes = _panels(len(panels))
    for panel, (name, (precision, ranked)) in zip(axes, panels.items(), strict=True):
        for label, (row, colour) in SHOWN.items():
            best = precision[row].tolist()
            recalls = [k / (len(best) - 1) for k in range(len(best))]
            panel.fill_between(recalls, best, step="mid", color=colour, alpha=0.2, linewidth=0)
            panel.step(recalls, best, where="mid", color=colour, label=f"{label} {precision[row].mean():.2f}")
            points = ranked[row][~ranked[row, :, 0].isnan()]
            panel.plot(points[:, 0].tolist(), points[:, 1].tolist(), color=colour, linewidth=0.6)
        panel.set(title=name, xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        panel.legend(fontsize=7, loc="lower left")
    return figure


def confusion_figure(matrix: ConfusionMatrix) -> "Figure":
    """The counts of the matrix, each cell as dark as its share of its row; cells of none are left empty."""
    from matplotlib.figure import Figure

    side = CELL * len(matrix.rows)
    figure = Figure(figsize=(side + 2.5, side + 2), layout="constrained")
    axes = figure.subplots()
    shares = matrix.counts / matrix.counts.sum(dim=1, keepdim=True).clamp(min=1)
    axes.imshow(shares.tolist(), cmap="Blues", vmin=0, vmax=1)
    for row, column in matrix.counts.nonzero().tolist():
        colour = "white" if shares[row, column] > 0.6 else "black"
        axes.text(column, row, f"{matrix.counts[row, column]}", color=colour, ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(matrix.columns)), matrix.columns, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(matrix.rows)), matrix.rows, fontsize=8)
    axes.set(xlabel="found as", ylabel="true class")
    axes.set_title(f"score {matrix.score:g} or more, IoU {IOU:g} or more", fontsize=8)
    return figure


def _panels(count: int) -> "tuple[Figure, list[Axes]]":
    """A figure with `count` square panels in rows; one that says so when there is nothing to show."""
    from matplotlib.figure import Figure

    rows = max(1, -(-count // COLUMNS))
    columns = min(COLUMNS, max(count, 1))
    figure = Figure(figsize=(SIDE * columns, (SIDE + 0.5) * rows), layout="constrained")
    if not count:
        figure.text(0.5, 0.5, "nothing to show", ha="center")
        return figure, []
    grid = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for panel in grid[count:]:
        panel.set_axis_off()
    for panel in grid[:count]:
        panel.title.set_size(8)
        panel.tick_params(labelsize=7)
    return figure, grid[:count]
