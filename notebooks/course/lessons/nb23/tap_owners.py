"""Windows as rows of a matrix, and for each number in it the GPU that has it."""

from collections.abc import Sequence

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, LEFT, TOP = 17, 74, 84


def tap_owners(table: Sequence[Sequence[int]], title: str) -> Figure:
    """Draw window -> tap -> who has it: 0 for nobody (padding), k for cuda:(k - 1). Windows of two GPUs are outlined.

    Raises ValueError when windows have different numbers of taps or there is none.
    """
    lengths = {len(row) for row in table}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(f"`table` must be windows of the same size, got sizes {sorted(lengths)}")
    taps = lengths.pop()
    mixed = [k for k, row in enumerate(table) if len(set(row) - {0}) > 1]
    words = f"{len(table)} windows of {taps} pixels; windows {mixed} need pixels of two GPUs."
    width = max(LEFT + taps * CELL + 130, 40 + 9.5 * len(title))
    canvas = Canvas(width, TOP + len(table) * CELL + 20, title, words, at=(16, 28))
    for gpu in range(max(map(max, table))):
        canvas.rect(16 + gpu * 66, 42, 58, 19, fill=gpu_colour(gpu), rx=9)
        canvas.text(45 + gpu * 66, 55.5, f"cuda:{gpu}", size=12, anchor="middle", fill=ink_on(gpu_colour(gpu)))
    for k, row in enumerate(table):
        y = TOP + k * CELL
        canvas.text(LEFT - 8, y + 13, f"row {k}", size=11, anchor="end", fill=INK if k in mixed else FAINT)
        for tap, owner in enumerate(row):
            x = LEFT + tap * CELL
            if owner:
                canvas.rect(x, y, CELL - 2, CELL - 2, fill=blend(gpu_colour(owner - 1), 0.8))
            else:
                canvas.rect(x, y, CELL - 2, CELL - 2, fill="none", stroke=RULE)
        if k in mixed:
            canvas.rect(LEFT - 2, y - 2, taps * CELL + 2, CELL + 2, fill="none", stroke=INK, stroke_width=1.4)
            canvas.text(LEFT + taps * CELL + 8, y + 13, "of both GPUs", size=11)
    return canvas.figure()
