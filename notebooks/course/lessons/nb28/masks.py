"""Which units each GPU dropped, as two grids side by side in the colours of the GPUs."""

from torch import Tensor

from course.kit.figures.palette import blend, gpu_colour
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

CELL, TOP, LEFT, GAP = 17, 76, 16, 36


def masks(dropped: list[Tensor], title: str) -> Figure:
    """Draw a mask (rows, units) of booleans for each GPU: a full cell is a unit that was dropped.

    Raises ValueError where the masks are not tables of one shape.
    """
    shapes = {tuple(mask.shape) for mask in dropped}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ValueError(f"`dropped` must be tables of one shape, got {[tuple(mask.shape) for mask in dropped]}")
    rows, units = shapes.pop()
    width = max(2 * LEFT + len(dropped) * (units * CELL + GAP) - GAP, 40 + 9 * len(title))
    canvas = Canvas(width, TOP + rows * CELL + 20, title, _describe(dropped), at=(LEFT, 28))
    for k, mask in enumerate(dropped):
        left = LEFT + k * (units * CELL + GAP)
        canvas.text(left, TOP - 12, f"cuda:{k}: {int(mask.sum())} of {mask.numel()} dropped", size=12, fill=FAINT)
        for row in range(rows):
            for unit in range(units):
                place = (left + unit * CELL, TOP + row * CELL, CELL - 2, CELL - 2)
                colour = gpu_colour(k) if mask[row, unit] else blend(gpu_colour(k), 0.08)
                canvas.rect(*place, fill=colour, stroke=RULE, stroke_width=0.5, rx=2)
    return canvas.figure()


def _describe(dropped: list[Tensor]) -> str:
    counts = ", ".join(f"cuda:{k} drops {int(mask.sum())} of {mask.numel()}" for k, mask in enumerate(dropped))
    both = int((dropped[0] & dropped[-1]).sum())
    return f"{counts}; the first and the last both drop {both} in the same places."
