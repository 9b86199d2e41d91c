"""How much each row of a batch weighs in a loss: a bar above every digit, in the colour of its GPU."""

from collections.abc import Sequence

from course.kit.figures.digits import cast, draw_digit
from course.kit.figures.palette import gpu_colour
from course.kit.figures.svg import FAINT, PAPER, RULE, Canvas, Figure

LEFT, COLUMN, TILE, TOP, TALLEST = 24, 58, 36, 62, 170


def row_weights(weights: Sequence[float], gpus: Sequence[int], title: str) -> Figure:
    """One bar a row, its height in proportion to d(loss) / d(loss of the row), against the fair share 1 / rows.

    Args:
        weights: 0 or more for each row of the batch.
        gpus: for each row, the index of the GPU that ran it.
    """
    if not weights or len(weights) != len(gpus) or min(weights) < 0:
        raise ValueError(f"want a weight of 0 or more and a GPU for every row, got {list(weights)} and {list(gpus)}")
    rows, fair = len(weights), 1 / len(weights)
    most = max(*weights, fair)
    floor = TOP + TALLEST
    canvas = Canvas(LEFT * 2 + rows * COLUMN + 84, floor + TILE + 40, title, _describe(weights, gpus), at=(16, 28))
    y, right = floor - TALLEST * fair / most, LEFT + rows * COLUMN
    canvas.line(16, y, right, y, stroke=FAINT, stroke_width=1.5, stroke_dasharray="6 4")
    canvas.text(right + 4, y + 4.5, f"1/{rows}: fair", size=12, fill=FAINT)
    for row, (weight, gpu) in enumerate(zip(weights, gpus, strict=True)):
        x, height = LEFT + row * COLUMN, TALLEST * weight / most
        canvas.rect(x, floor - height, TILE, max(height, 1), fill=gpu_colour(gpu), rx=3)
        canvas.rect(x - 4, floor - height - 18, TILE + 8, 16, fill=PAPER)  # the dashed line stops behind the number
        canvas.text(x + TILE / 2, floor - height - 6, f"{weight:.3f}", size=12, anchor="middle")
        draw_digit(canvas, cast()[row % 10], x, floor + 8, TILE, edge=gpu_colour(gpu))
        canvas.text(x + TILE / 2, floor + TILE + 24, f"cuda:{gpu}", size=11, anchor="middle", fill=FAINT)
    canvas.line(16, floor, right, floor, stroke=RULE)
    return canvas.figure()


def _describe(weights: Sequence[float], gpus: Sequence[int]) -> str:
    pairs = enumerate(zip(weights, gpus, strict=True))
    bars = "; ".join(f"row {k} on cuda:{gpu}: {weight:.3f}" for k, (weight, gpu) in pairs)
    return f"{bars}. A fair share is {1 / len(weights):.3f}."
