"""Who feeds whom: the channels of a grouped convolution, and the classes of ragged groups."""

from collections.abc import Callable, Sequence

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

STEP, TOP, LEFT, SPAN, DOT = 26, 74, 30, 170, 9
CELL = 18


def group_wiring(in_channels: int, out_channels: int, groups: int) -> Figure:
    """Draw `Conv2d(in_channels, out_channels, groups=groups)`: the wires, and the blocks of its dense equivalent.

    Raises ValueError where the layer itself would: when `groups` does not divide both numbers.
    """
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ValueError(f"`groups` is {groups}: it must divide {in_channels} input and {out_channels} output channels")
    fan_in, fan_out = in_channels // groups, out_channels // groups
    matrix_x = LEFT + SPAN + 90
    height = TOP + max(in_channels, out_channels) * STEP + 20
    title = f"{in_channels} channels to {out_channels} in {_count(groups, 'group')}"
    words = (
        f"Each output channel reads {_count(fan_in, 'input channel')} of its own group: "
        f"{out_channels * fan_in} of {out_channels * in_channels} weights a tap are there. "
        f"Every group makes {_count(fan_out, 'output channel')}."
    )
    canvas = Canvas(max(matrix_x + in_channels * CELL + 40, 470), height, title, words, at=(16, 26))
    canvas.text(LEFT - 12, 56, "in", font_weight="bold")
    canvas.text(LEFT + SPAN - 12, 56, "out", font_weight="bold")
    canvas.text(matrix_x, 56, "weights a tap, out x in", font_weight="bold")
    left = _column(in_channels, max(in_channels, out_channels))
    right = _column(out_channels, max(in_channels, out_channels))
    links = [(i, o) for o in range(out_channels) for i in range(in_channels) if i // fan_in == o // fan_out]
    _wires(canvas, left, right, links, lambda link: link[0] // fan_in)
    _dots(canvas, LEFT, left, [i // fan_in for i in range(in_channels)])
    _dots(canvas, LEFT + SPAN, right, [o // fan_out for o in range(out_channels)])
    for o in range(out_channels):
        for i in range(in_channels):
            inside = (i, o) in links
            fill = blend(_colour(i // fan_in), 0.75) if inside else "#f6f8fa"
            x, y = matrix_x + i * CELL, TOP - DOT + o * CELL
            canvas.rect(x, y, CELL - 1, CELL - 1, fill=fill, stroke=None if inside else RULE, stroke_width=0.5)
    return canvas.figure()


def class_wiring(nclasses_per_group: Sequence[int]) -> Figure:
    """Draw which group each class reads, groups of any size, empty ones included."""
    groups, classes = len(nclasses_per_group), sum(nclasses_per_group)
    if not classes:
        raise ValueError(f"`nclasses_per_group` is {tuple(nclasses_per_group)}: there is no class to draw")
    index = [group for group, n in enumerate(nclasses_per_group) for _ in range(n)]
    title = f"{_count(classes, 'class', 'classes')} of {_count(groups, 'group')}"
    words = f"Class by class, the group that is read: {', '.join(map(str, index))}."
    most = max(groups, classes)
    canvas = Canvas(470, TOP + most * STEP + 20, title, words, at=(16, 26))
    canvas.text(LEFT - 12, 56, "groups", font_weight="bold")
    canvas.text(LEFT + SPAN - 12, 56, "classes", font_weight="bold")
    canvas.text(LEFT + SPAN + 90, 56, "index", font_weight="bold")
    left, right = _column(groups, most), _column(classes, most)
    _wires(canvas, left, right, list(zip(index, range(classes), strict=True)), lambda link: link[0])
    _dots(canvas, LEFT, left, list(range(groups)))
    _dots(canvas, LEFT + SPAN, right, index)
    for c, group in enumerate(index):
        canvas.text(LEFT + SPAN + 104, right[c] + 4.5, f"[{c}] = {group}", fill=FAINT)
    return canvas.figure()


def _column(count: int, most: int) -> list[float]:
    """Heights of `count` dots, spread over the height that `most` of them take."""
    gap = STEP if count == most else (most - 1) * STEP / max(count - 1, 1)
    start = TOP if count > 1 else TOP + (most - 1) * STEP / 2
    return [start + k * gap for k in range(count)]


def _wires(
    canvas: Canvas,
    left: Sequence[float],
    right: Sequence[float],
    links: Sequence[tuple[int, int]],
    group_of: Callable[[tuple[int, int]], int],
) -> None:
    for link in links:
        ends = LEFT + DOT, left[link[0]], LEFT + SPAN - DOT, right[link[1]]
        canvas.line(*ends, stroke=blend(_colour(group_of(link)), 0.7), stroke_width=1.8)


def _dots(canvas: Canvas, x: float, heights: Sequence[float], groups: Sequence[int]) -> None:
    for k, (y, group) in enumerate(zip(heights, groups, strict=True)):
        canvas.circle(x, y, DOT, fill=_colour(group))
        canvas.text(x, y + 4, k, size=11, anchor="middle", fill=ink_on(_colour(group)))


def _colour(group: int) -> str:
    return KIND_COLOURS[group % len(KIND_COLOURS)]


def _count(n: int, thing: str, plural: str | None = None) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {plural or thing + 's'}"
