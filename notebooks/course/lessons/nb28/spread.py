"""How many weights of each layer differ between two runs, step by step: a heat map."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

TOP, ROW, COLUMN = 56, 34, 52


def spread(shares: Mapping[int, Sequence[float]], layers: Sequence[str], title: str) -> Figure:
    """Draw step -> the share, 0 to 1, of the weights of each layer that differ.

    Raises ValueError where a step has not as many shares as there are layers, or one is outside of 0 to 1.
    """
    for step, row in shares.items():
        if len(row) != len(layers) or not all(0 <= share <= 1 for share in row):
            raise ValueError(f"`shares` of step {step} must be {len(layers)} numbers from 0 to 1, got {row}")
    left = 30 + 7 * max(map(len, layers))
    width = max(left + COLUMN * len(shares) + 16, 40 + 9 * len(title))
    canvas = Canvas(width, TOP + ROW * len(layers) + 44, title, _describe(shares, layers), at=(16, 28))
    for column, (step, row) in enumerate(shares.items()):
        x = left + column * COLUMN
        for k, share in enumerate(row):
            colour, y = blend(KIND_COLOURS[0], share), TOP + k * ROW
            canvas.rect(x, y, COLUMN - 3, ROW - 3, fill=colour, stroke=RULE, rx=3)
            canvas.text(x + COLUMN / 2 - 1.5, y + 20, f"{share:.0%}", size=12, anchor="middle", fill=ink_on(colour))
        canvas.text(x + COLUMN / 2 - 1.5, TOP + ROW * len(layers) + 14, step, size=11, anchor="middle", fill=FAINT)
    for k, layer in enumerate(layers):
        canvas.text(16, TOP + k * ROW + 20, layer, size=12)
    canvas.text(left, TOP + ROW * len(layers) + 34, "after so many steps; weights that differ", size=12, fill=FAINT)
    return canvas.figure()


def _describe(shares: Mapping[int, Sequence[float]], layers: Sequence[str]) -> str:
    told = (
        f"after {step} steps {', '.join(f'{layer} {share:.0%}' for layer, share in zip(layers, row, strict=True))}"
        for step, row in shares.items()
    )
    return "Weights that differ: " + "; ".join(told) + "."
