"""The charts of a judged detector: precision over recall, and the errors it should be looked at for.

Both return a matplotlib figure, to show in a notebook or to save: `figure.savefig("curves.svg")`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from frcnn_lite.data.dataset import DetectionDataset
from frcnn_lite.engine.average_precision import ClassCurve, Judged
from frcnn_lite.engine.detection_errors import DetectionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
SIDE = 2.4  # inches of a panel
SHOWN = {"AP50": (0, "#0072b2"), "AP75": (5, "#d55e00")}  # row of `ClassCurve`, colour (Okabe and Ito)
FOUND, TRUE = "#d55e00", "#000000"


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


def worst_errors(
    errors: Sequence[DetectionError], judged: Sequence[Judged], data: DetectionDataset, most: int = 12
) -> "Figure":
    """The surroundings of at most `most` errors, the first ones; up to a third of them are missed objects.

    errors: of `engine.find_errors(judged)`, all or some; judged: of `engine.judge(model, data)`. What was found (or,
    dashed, missed) is drawn in vermilion, the true box that it overlaps most in black.
    """
    missed, wrong = ([error for error in errors if (error.kind == "missed") is which] for which in (True, False))
    missed = missed[: max(most // 3, most - len(wrong))]
    shown = [*wrong[: most - len(missed)], *missed]
    figure, axes = _panels(len(shown))
    for panel, error in zip(axes, shown, strict=True):
        truth = judged[error.picture]
        image = data[error.picture].image
        panel.imshow(image.permute(1, 2, 0).numpy())
        if error.object is not None and error.kind != "missed":
            _draw_box(panel, truth.boxes[error.object], TRUE, "--")
        _draw_box(panel, error.box, FOUND, "--" if error.kind == "missed" else "-")
        _look_at(panel, error.box, image.shape[1:])
        score = "" if error.kind == "missed" else f" at {error.score:.2f}"
        panel.set(xticks=[], yticks=[], title=f"{error.kind}: {data.class_names[error.label]}{score}")
        panel.set_xlabel(f"picture {truth.image_id}")
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


def _draw_box(panel: "Axes", box: torch.Tensor, colour: str, line: str) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box.tolist()
    panel.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=colour, linestyle=line, linewidth=1.5))


def _look_at(panel: "Axes", box: torch.Tensor, size: Sequence[int]) -> None:
    """Show the box and as much around it as it is large."""
    x1, y1, x2, y2 = box.tolist()
    margin = max(x2 - x1, y2 - y1)
    panel.set_xlim(max(x1 - margin, 0), min(x2 + margin, size[1]))
    panel.set_ylim(min(y2 + margin, size[0]), max(y1 - margin, 0))
