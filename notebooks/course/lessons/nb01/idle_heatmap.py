"""How many replicas stay idle, for every number of rows and GPUs."""

from collections.abc import Sequence

from course.kit.figures.palette import WRONG_COLOUR, blend, ink_on
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

CELL = 22
LEFT, TOP, BOTTOM = 78, 48, 60


def idle_heatmap(idle: Sequence[Sequence[int]]) -> Figure:
    """One cell per (GPUs, rows): darker means more replicas without a row; the number stands in the cell.

    idle: idle[g - 1][n - 1] = idle replicas when n rows go to g GPUs; every line of equal length.
    """
    lengths = {len(line) for line in idle}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"`idle` must be a table with lines of one length, got lengths {sorted(lengths)}")
    gpus, rows = len(idle), lengths.pop()
    worst = max(map(max, idle))
    canvas = Canvas(
        LEFT + rows * CELL + 16, TOP + gpus * CELL + BOTTOM, f"Idle replicas for 1 to {rows} rows", _describe(idle)
    )
    canvas.text(
        16, 26, f"Replicas that get no row, for 1 to {rows} rows on 1 to {gpus} GPUs", size=16, font_weight="bold"
    )
    for g, line in enumerate(idle, start=1):
        y = TOP + (g - 1) * CELL
        canvas.text(LEFT - 8, y + 15.5, f"{g} GPU{'s' if g > 1 else ''}", size=12, anchor="end")
        for n, count in enumerate(line, start=1):
            _draw_cell(canvas, LEFT + (n - 1) * CELL, y, count, worst)
    for n in range(1, rows + 1):
        if n == 1 or n % 4 == 0:
            canvas.text(LEFT + (n - 0.5) * CELL, TOP + gpus * CELL + 18, n, size=12, anchor="middle")
    canvas.text(LEFT + rows * CELL / 2, TOP + gpus * CELL + 42, "rows in the batch", anchor="middle", fill=FAINT)
    return canvas.figure()


def _draw_cell(canvas: Canvas, x: float, y: float, count: int, worst: int) -> None:
    colour = blend(WRONG_COLOUR, 0.15 + 0.85 * count / worst) if count else "#f6f8fa"
    canvas.rect(
        x + 0.5, y + 0.5, CELL - 1, CELL - 1, fill=colour, stroke=None if count else RULE, stroke_width=0.5, rx=3
    )
    if count:
        canvas.text(x + CELL / 2, y + 15.5, count, size=12, anchor="middle", fill=ink_on(colour))


def _describe(idle: Sequence[Sequence[int]]) -> str:
    """Which batch sizes leave nobody idle, for each number of GPUs, and the worst case beyond one row per GPU."""
    lines = []
    for g, line in enumerate(idle, start=1):
        wasteful = [n for n, count in enumerate(line, start=1) if count and n >= g]
        if wasteful:
            lines.append(
                f"with {g} GPUs one or more idle at {', '.join(map(str, wasteful))} rows, although that is enough rows"
            )
    if not lines:
        return "No GPU stays idle once there are as many rows as GPUs."
    return "Below one row per GPU some GPU always stays idle. " + "; ".join(lines) + "."
