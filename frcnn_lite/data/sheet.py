"""A sheet of pictures with a box around every object."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from frcnn_lite.data.batch import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 1.6  # inches of a picture


def scene_sheet(scenes: Sequence[Scene], class_names: Sequence[str], columns: int = 4) -> "Figure":
    """Pictures in reading order, each box tagged with the name of its class, as a matplotlib figure.

    Raises ValueError for no scenes or fewer than one column.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    if not scenes or columns < 1:
        raise ValueError(f"a sheet needs a scene and a column, got {len(scenes)} scenes and columns={columns}")
    columns = min(columns, len(scenes))
    rows = -(-len(scenes) // columns)
    figure = Figure(figsize=(SIDE * columns, SIDE * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for panel in grid:
        panel.set_axis_off()
    for panel, scene in zip(grid, scenes, strict=False):
        panel.imshow(scene.image.permute(1, 2, 0).numpy())
        for (x1, y1, x2, y2), label in zip(scene.boxes.tolist(), scene.labels.tolist(), strict=True):
            colour = f"C{label % 10}"
            panel.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=colour))
            panel.text(x1, y1, class_names[label], color="white", backgroundcolor=colour, fontsize=6, va="bottom")
    return figure
