"""What each notebook builds on: boxes in columns, an arrow from every notebook to those that need it."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure

BOX_WIDTH, BOX_HEIGHT, COLUMN, ROW = 127, 46, 149, 54
LEFT, TOP, LETTERS, LINES = 16, 56, 15, 3  # letters of a title in a line of a box, and lines


def prerequisites(titles: Mapping[str, str], needs: Mapping[str, Sequence[str]]) -> Figure:
    """Draw which notebook needs which, from left to right.

    titles: number -> title, in reading order; needs: number -> numbers of what it needs. An arrow is left out where
    other arrows lead the same way.

    Raises ValueError for no notebook, for one that needs a later or an unknown one.
    """
    if not titles:
        raise ValueError("`titles` is empty: there is nothing to draw")
    order = list(titles)
    for k, number in enumerate(order):
        unknown = [other for other in needs.get(number, ()) if other not in order[:k]]
        if unknown:
            raise ValueError(f"{number} needs {', '.join(unknown)}, which are not notebooks before it")
    direct = _reduce(titles, needs)
    column = _columns(titles, direct)
    parent = {n: max(direct[n], key=lambda other: (column[other], other)) for n in titles if direct[n]}
    row = _rows(titles, parent)
    canvas = Canvas(
        2 * LEFT + max(column.values()) * COLUMN + BOX_WIDTH,
        TOP + (max(row.values()) + 1) * ROW + 8,
        "What each notebook builds on",
        _describe(titles, direct),
        (LEFT, 26),
    )
    canvas.text(LEFT, 44, "Follow the lines back from the notebook that you need.", size=12, fill=FAINT)
    place = {n: (LEFT + column[n] * COLUMN, TOP + row[n] * ROW) for n in titles}
    for number in titles:
        for other in direct[number]:
            _draw_line(canvas, place[other], place[number], dashed=other != parent[number])
    heads = [title.split(":")[0] for title in titles.values()]
    short = {n: title if heads.count(title.split(":")[0]) > 1 else title.split(":")[0] for n, title in titles.items()}
    for number in titles:
        _draw_box(canvas, *place[number], number, short[number], start=not direct[number])
    return canvas.figure()


def _reduce(titles: Mapping[str, str], needs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What each needs and does not get on the way to something else that it needs."""
    behind: dict[str, set[str]] = {}  # everything on the way to a notebook; reading order, so what it needs is there
    for number in titles:
        behind[number] = set(needs.get(number, ())).union(*(behind[other] for other in needs.get(number, ())))
    return {n: sorted(o for o in set(needs.get(n, ())) if not any(o in behind[p] for p in needs[n])) for n in titles}


def _columns(titles: Mapping[str, str], direct: Mapping[str, list[str]]) -> dict[str, int]:
    column: dict[str, int] = {}
    for number in titles:
        column[number] = max((column[other] + 1 for other in direct[number]), default=0)
    return column


def _rows(titles: Mapping[str, str], parent: Mapping[str, str]) -> dict[str, int]:
    """A tree whose first branch goes straight on."""
    row: dict[str, int] = {}

    def put(number: str, at: int) -> int:
        row[number] = at
        children = [child for child in titles if parent.get(child) == number]
        for child in children:
            at = put(child, at)
        return at if children else at + 1

    at = 0
    for number in titles:
        if number not in parent:
            at = put(number, at)
    return row


def _draw_line(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], dashed: bool) -> None:
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT / 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT / 2
    half = (COLUMN - BOX_WIDTH) / 2
    bend = x2 - half + 6 if dashed else x1 + half  # a dashed line stays in its own row as long as it can
    canvas.polyline(
        [(x1, y1), (bend, y1), (bend, y2), (x2, y2)],
        stroke=FAINT if dashed else INK,
        stroke_dasharray="4 3" if dashed else None,
    )
    canvas.path(f"M{x2 - 6} {y2 - 3.5}L{x2} {y2}L{x2 - 6} {y2 + 3.5}z", fill=INK)


def _draw_box(canvas: Canvas, x: float, y: float, number: str, title: str, start: bool) -> None:
    canvas.rect(x, y, BOX_WIDTH, BOX_HEIGHT, fill=RULE if start else PAPER, stroke=INK, rx=5)
    middle = y + BOX_HEIGHT / 2
    canvas.text(x + 7, middle + 4.5, number, font_weight="bold")
    lines = wrap(title, LETTERS, max_lines=LINES, placeholder=" …", break_on_hyphens=False)
    for k, line in enumerate(lines):
        canvas.text(x + 28, middle + 4 + 13 * (k - (len(lines) - 1) / 2), line, size=11)


def _describe(titles: Mapping[str, str], direct: Mapping[str, list[str]]) -> str:
    return "; ".join(
        f"{number} {title} builds on {' and '.join(direct[number]) or 'nothing'}" for number, title in titles.items()
    )
