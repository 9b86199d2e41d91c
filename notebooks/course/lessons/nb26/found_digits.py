"""How often each digit is found with two indices: which group a digit reads, and a bar for each."""

from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

TOP, ROW, BAR, LEFT, LENGTH = 74, 34, 12, 150, 300
BEFORE, AFTER = KIND_COLOURS[1], KIND_COLOURS[2]


def found_digits(
    indices: tuple[Sequence[int], Sequence[int]], found: tuple[Sequence[int], Sequence[int]], title: str
) -> Figure:
    """A row for each class: the group that it reads before and after, and how often it is found.

    Raises ValueError when the four sequences differ in length.
    """
    if len({len(values) for values in (*indices, *found)}) != 1:
        raise ValueError(f"`indices` and `found` must be equally long, got {[len(v) for v in (*indices, *found)]}")
    rows = list(zip(*indices, *found, strict=True))
    most = max(max(found[0]), max(found[1]), 1)
    told = "; ".join(
        f"{digit}: group {a}, found {n}, then group {b}, found {m}" for digit, (a, b, n, m) in enumerate(rows)
    )
    canvas = Canvas(LEFT + LENGTH + 60, TOP + ROW * len(rows) + 8, title, f"{told}.", at=(16, 28))
    canvas.text(16, 58, "digit", size=12, fill=FAINT)
    canvas.text(58, 58, "reads group", size=12, fill=FAINT)
    canvas.text(LEFT, 58, "above: the right index; below: the wrong one", size=12, fill=FAINT)
    canvas.line(LEFT, TOP - 6, LEFT, TOP + ROW * len(rows) - 4, stroke=RULE)
    for digit, (right, wrong, before, after) in enumerate(rows):
        y = TOP + digit * ROW
        canvas.text(24, y + 17, digit, size=16, font_weight="bold")
        words = str(right) if right == wrong else f"{right}, now {wrong}"
        canvas.text(58, y + 16, words, size=13, fill=INK if right == wrong else AFTER)
        for k, (count, colour) in enumerate(((before, BEFORE), (after, AFTER))):
            length = max(LENGTH * count / most, 1)
            canvas.rect(LEFT, y + k * (BAR + 1), length, BAR, fill=colour, rx=2)
            canvas.text(LEFT + length + 6, y + k * (BAR + 1) + 10, count, size=11)
    return canvas.figure()
