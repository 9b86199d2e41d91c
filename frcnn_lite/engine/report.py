"""Precision over recall of a judged detector, as a matplotlib figure: `figure.savefig("curves.svg")` saves it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from frcnn_lite.engine.average_precision import ClassCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
SIDE = 2.4  # inches of a panel
SHOWN = {"AP50": (0, "#0072b2"), "AP75": (5, "#d55e00")}  # row of `ClassCurve`, colour (Okabe and Ito)


def precision_recall(curves: Mapping[str, ClassCurve]) -> "Figure":
    """A panel for the mean of all classes and one for each, at an IoU of 0.5 and of 0.75.

    The filled line is the best precision at this recall or beyond, which COCO reads at 101 recalls: the area under it
    is AP. The thin line is precision and recall as the detections are ranked.

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
