"""Ranks as lanes, their collectives as columns: who came, who waits, and who is waited for."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure
from frcnn_lite.parallel.watchdog import Entered, Position

LEFT, TOP, LANE, CELL, GAP, COLUMN, LETTER = 76, 74, 46, 32, 5, 96, 6.6
CAPTION = "filled: came through; hatched: waits; dashed: never came"
APART = "; framed: called from different lines"
ENDS = {"waiting": "waits here", "running": "is elsewhere", "left": "left", "silent": "does not answer"}


def collective_lanes(positions: Sequence[Position], title: str) -> Figure:
    """Draw what `CollectiveHang.positions` tells: filled, a rank came through; hatched, it waits; dashed, never came.

    Columns are the collectives of the group that hangs, by their numbers; a cell has the name the rank called. Where
    ranks called from different lines, the cells have them, and a frame is drawn around the column.
    Raises ValueError when no rank waits in a collective.
    """
    waiting = [position.call for position in positions if position.call is not None]
    if not waiting:
        raise ValueError("`positions` has no rank that waits in a collective")
    group = waiting[0].group
    came = {position.rank: _by_number(position, group) for position in positions}
    numbers = sorted({number for entered in came.values() for number in entered})
    longest = max(len(_words(entry)) for entered in came.values() for entry in entered.values())
    column = max(COLUMN, LETTER * longest + 2 * GAP + 14)
    ends = {position.rank: _end(position) for position in positions}
    right = LEFT + column * len(numbers) + 14
    width = right + LETTER * max(map(len, ends.values())) + 16
    apart = {number for number in numbers if len(_sites(came, number)) > 1}
    caption = CAPTION + APART * bool(apart)
    width = max(width, 40 + 8.4 * len(title), 40 + LETTER * len(caption))
    canvas = Canvas(width, TOP + LANE * len(positions) + 34, title, _describe(came, positions), at=(16, 28))
    for k, number in enumerate(numbers):
        step = next((e[number].step for e in came.values() if number in e), None)
        words_above = f"#{number}" + ("" if step is None else f", step {step}")
        canvas.text(LEFT + (k + 0.5) * column, TOP - 12, words_above, size=12, anchor="middle", fill=FAINT)
        if number in apart:
            height = LANE * len(positions) - LANE + CELL + 2 * GAP
            canvas.rect(LEFT + k * column, TOP - GAP, column, height, fill="none", stroke=INK, stroke_width=2.4, rx=7)
    for row, position in enumerate(positions):
        y = TOP + row * LANE
        canvas.text(16, y + 21, f"rank {position.rank}", size=13, font_weight="bold")
        for k, number in enumerate(numbers):
            box = (LEFT + k * column + GAP, y, column - 2 * GAP, CELL)
            entry = came[position.rank].get(number)
            _draw_cell(canvas, position, entry, number in apart, box)
        canvas.text(right, y + 21, ends[position.rank], size=12)
    canvas.text(16, TOP + LANE * len(positions) + 18, caption, size=12, fill=FAINT)
    return canvas.figure()


def _draw_cell(
    canvas: Canvas,
    position: Position,
    entry: Entered | None,
    with_site: bool,
    box: tuple[float, float, float, float],
) -> None:
    x, y, width, height = box
    colour, waits = gpu_colour(position.rank), entry == position.call
    if entry is None:
        canvas.rect(x, y, width, height, fill="none", stroke=FAINT, stroke_dasharray="4 4", rx=5)
        return
    fill = blend(colour, 0.25) if waits else colour
    canvas.rect(x, y, width, height, fill=fill, stroke=INK, stroke_width=0.8, rx=5)
    if waits:
        canvas.hatch(x, y, width, height, stroke=blend(colour, 0.7))
        canvas.rect(x + 5, y + 5, width - 10, height - 10, fill=fill, rx=4)
    middle, base = x + width / 2, y + height / 2 + (-2 if with_site else 4)
    canvas.text(middle, base, _words(entry), size=12, anchor="middle", fill=ink_on(fill))
    if with_site:
        canvas.text(middle, base + 13, entry.site, size=10, anchor="middle", fill=ink_on(fill))


def _sites(came: Mapping[int, Mapping[int, Entered]], number: int) -> set[str]:
    """The lines from which ranks called the collective of this number."""
    return {entered[number].site for entered in came.values() if number in entered}


def _by_number(position: Position, group: tuple[int, ...]) -> dict[int, Entered]:
    entries = (*position.entered, *([position.call] if position.call else []))
    return {entry.number: entry for entry in entries if entry.group == group}


def _words(entry: Entered) -> str:
    """The name without what stands in parentheses, which the description has."""
    return entry.name.partition(" of ")[0]


def _end(position: Position) -> str:
    word = ENDS[position.state]
    if position.state == "left" and position.step is not None:
        word += f" {'in' if position.why else 'after'} step {position.step}"
    return word + (f": {position.why}" if position.why else "")


def _describe(came: dict[int, dict[int, Entered]], positions: Sequence[Position]) -> str:
    told = []
    for position in positions:
        passed = [f"#{n} {e.name} at {e.site}" for n, e in sorted(came[position.rank].items()) if e != position.call]
        told.append(f"rank {position.rank} came through {', '.join(passed) or 'none'} and {_end(position)}")
    return "Collectives of each rank: " + "; ".join(told)
