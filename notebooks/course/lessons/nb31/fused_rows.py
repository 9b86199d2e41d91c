"""The rows of a fused weight in blocks, each in the colour of the rank that held it, in one order or another."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

LEFT, TOP, WIDTH, BLOCK, GAP = 16, 84, 150, 30, 26

Block = tuple[str, int]  # its letter, "q", "k" or "v", and the rank that held it


def fused_rows(orders: Mapping[str, Sequence[Block]], title: str) -> Figure:
    """A column for each of `orders`, its blocks from top to bottom. Raises ValueError when columns differ in blocks."""
    kinds = {tuple(sorted(order)) for order in orders.values()}
    if len(kinds) != 1:
        raise ValueError("`orders` must all hold the same blocks")
    count = len(kinds.pop())
    width = max(2 * LEFT + len(orders) * (WIDTH + GAP) - GAP, 2 * LEFT + 9.5 * len(title))
    canvas = Canvas(width, TOP + count * BLOCK + 18, title, _describe(orders), at=(LEFT, 28))
    for k, (name, order) in enumerate(orders.items()):
        x = LEFT + k * (WIDTH + GAP)
        canvas.text(x + WIDTH / 2, TOP - 12, name, size=12, anchor="middle", fill=FAINT)
        for row, (letter, rank) in enumerate(order):
            colour, y = blend(gpu_colour(rank), 0.55), TOP + row * BLOCK
            canvas.rect(x, y, WIDTH, BLOCK - 2, fill=colour, stroke=gpu_colour(rank))
            canvas.text(
                x + WIDTH / 2, y + 19, f"{letter} of rank {rank}", size=12, anchor="middle", fill=ink_on(colour)
            )
        for third in range(0, count + 1, count // 3):
            canvas.line(x - 6, TOP - 1 + third * BLOCK, x + WIDTH + 6, TOP - 1 + third * BLOCK, stroke=INK)
    return canvas.figure()


def _describe(orders: Mapping[str, Sequence[Block]]) -> str:
    return (
        "; ".join(f"{name}: {', '.join(f'{a} of rank {r}' for a, r in order)}" for name, order in orders.items()) + "."
    )
