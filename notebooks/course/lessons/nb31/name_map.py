"""Names of a file and names of a model side by side: which went where, and which are left over."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import KIND_COLOURS, WRONG_COLOUR
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

LEFT, TOP, ROW, NAME, GAP = 16, 68, 22, 206, 124


def name_map(
    pairs: Mapping[str, str],
    title: str,
    *,
    turned: Sequence[str] = (),
    skipped: Sequence[str] = (),
    unused: Sequence[str] = (),
    missing: Sequence[str] = (),
    sides: tuple[str, str] = ("in the file", "in the model"),
) -> Figure:
    """A line for every pair; `pairs` maps a name of the model to one of the file, `turned` are the model's transposed.

    skipped, unused: names of the file without a partner, on purpose and not; missing: names of the model without one.
    """
    if not pairs and not unused and not missing:
        raise ValueError("`pairs`, `unused` and `missing` are all empty: there are no names to draw")
    rows = len(pairs) + max(len(skipped) + len(unused), len(missing))
    canvas = Canvas(2 * LEFT + 2 * NAME + GAP, TOP + rows * ROW + 14, title, _in_words(pairs, skipped, unused, missing))
    canvas.text(LEFT, 26, title, size=16, font_weight="bold")
    right = LEFT + NAME + GAP
    for x, side in zip((LEFT, right), sides, strict=True):
        canvas.text(x, 50, side, size=12, fill=FAINT)
    for k, (own, foreign) in enumerate(pairs.items()):
        y = TOP + k * ROW
        colour = KIND_COLOURS[3] if own in turned else KIND_COLOURS[0]
        _name(canvas, LEFT, y, foreign)
        _name(canvas, right, y, own)
        canvas.line(LEFT + NAME, y + 7, right - 6, y + 7, stroke=colour, stroke_width=2)
        if own in turned:
            canvas.text(LEFT + NAME + GAP / 2, y + 3, "transposed", size=11, anchor="middle")
    alone = [(name, "skipped", FAINT) for name in skipped] + [(name, "unused", WRONG_COLOUR) for name in unused]
    for k, (name, word, colour) in enumerate(alone):
        _name(canvas, LEFT, TOP + (len(pairs) + k) * ROW, name, word, colour)
    for k, name in enumerate(missing):
        _name(canvas, right, TOP + (len(pairs) + k) * ROW, name, "missing", WRONG_COLOUR)
    return canvas.figure()


def _name(canvas: Canvas, x: float, y: float, name: str, word: str = "", colour: str = INK) -> None:
    canvas.rect(x, y - 2, NAME - 6, ROW - 4, fill="none", stroke=colour if word else RULE, rx=4)
    canvas.text(x + 8, y + 11, name, size=12, font_family="monospace")
    if word:
        canvas.text(x + NAME - 14, y + 11, word, size=11, anchor="end", fill=colour)


def _in_words(pairs: Mapping[str, str], skipped: Sequence[str], unused: Sequence[str], missing: Sequence[str]) -> str:
    told = [f"{foreign} becomes {own}" for own, foreign in pairs.items()]
    for word, names in (("skipped", skipped), ("unused", unused), ("missing", missing)):
        told += [f"{name} is {word}" for name in names]
    return "; ".join(told) + "."
