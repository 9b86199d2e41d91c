"""Two GPUs that share one loop of an einsum, drawn: who holds which part of each tensor, and what has to be added."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

LEFT, TOP, ROW, COLUMN, BOX, HEIGHT = 46, 84, 84, 132, 92, 24


def letter_cuts(added: Mapping[str, Sequence[str]], tensors: Mapping[str, str], title: str) -> Figure:
    """A row for each letter that is cut, a column for each tensor.

    Args:
        added: letter -> the axes of the results that were added up, as a run has noted them.
        tensors: name -> its axes, the operands first and the output last.
        title: what it shows.
    """
    if not added or not tensors:
        raise ValueError(f"`added` and `tensors` must not be empty, got {dict(added)} and {dict(tensors)}")
    names = list(tensors)
    width = max(LEFT + COLUMN * len(names) + 8, 40 + 9.2 * len(title))
    canvas = Canvas(width, TOP + ROW * len(added) + 6, title, _describe(added, tensors), at=(16, 28))
    for column, name in enumerate(names):
        canvas.text(LEFT + column * COLUMN, 52, name, size=13, font_weight="bold")
        words = tensors[name] if column == len(names) - 1 else f"{tensors[name]}, its gradient"
        canvas.text(LEFT + column * COLUMN, 68, words, size=12, fill=FAINT)
    for row, letter in enumerate(added):
        y = TOP + row * ROW
        canvas.text(20, y + 32, letter, size=18, anchor="middle", font_weight="bold")
        for column, name in enumerate(names):
            _tensor(canvas, LEFT + column * COLUMN, y, letter in tensors[name], tensors[name] in added[letter])
    return canvas.figure()


def _tensor(canvas: Canvas, x: float, y: float, is_cut: bool, is_added: bool) -> None:
    """Two halves side by side, or the whole on each of two GPUs, one above the other."""
    for gpu in range(2):
        colour = blend(gpu_colour(gpu), 0.3 if is_added else 0.75)
        if is_cut:
            left, top, width = x + gpu * BOX / 2, y + HEIGHT / 2 + 2, BOX / 2
        else:
            left, top, width = x, y + gpu * (HEIGHT + 4), BOX
        dashes = {"stroke_dasharray": "4 3"} if is_added else {}
        canvas.rect(left, top, width, HEIGHT, fill=colour, stroke=INK, **dashes)
        canvas.text(left + width / 2, top + 16, f"cuda:{gpu}", size=11, anchor="middle", fill=ink_on(colour))
    if is_added:
        canvas.text(x + BOX + 14, y + HEIGHT + 8, "+", size=20, anchor="middle", font_weight="bold")
    words = "added up" if is_added else "stays where it is"
    canvas.text(x, y + 2 * HEIGHT + 20, words, size=12, fill=INK if is_added else FAINT)


def _describe(added: Mapping[str, Sequence[str]], tensors: Mapping[str, str]) -> str:
    output = list(tensors)[-1]
    rows = []
    for letter, sums in added.items():
        names = [
            name if name == output else f"the gradient of {name}" for name, axes in tensors.items() if axes in sums
        ]
        rows.append(f"{letter} is cut: {' and '.join(names) or 'nothing'} is added up")
    return "; ".join(rows) + "."
