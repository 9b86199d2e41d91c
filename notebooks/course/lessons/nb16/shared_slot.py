"""Two GPUs and one place to keep something: who writes, what lies there after that, and who reads whose."""

from collections.abc import Sequence
from dataclasses import dataclass

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

TOP, LANE, BOX, LEFT, COLUMN, HEIGHT, LETTER = 84, 58, 88, 78, 104, 30, 6.6
CAPTION = "hatched: backward reads what a different GPU has kept"


@dataclass(frozen=True)
class Use:
    """A replica on GPU `gpu` does something, "forward" or so; `read`: whose it found, None where it wrote."""

    gpu: int
    words: str
    read: int | None = None


def shared_slot(uses: Sequence[Use], slot: str, title: str) -> Figure:
    """Draw uses from left to right: the GPUs above and below, and between them what lies in the slot.

    Raises ValueError for no uses, and for a GPU other than 0 and 1.
    """
    if not uses or {use.gpu for use in uses} - {0, 1}:
        raise ValueError(f"`uses` must be of GPUs 0 and 1, got {[use.gpu for use in uses]}")
    width = max(LEFT + COLUMN * len(uses) + 16, 40 + 9 * len(title), 32 + LETTER * len(CAPTION))
    canvas = Canvas(width, TOP + 3 * LANE + 24, title, _describe(uses, slot), at=(16, 28))
    for row, name in enumerate(("cuda:0", slot, "cuda:1")):
        middle = TOP + row * LANE + HEIGHT / 2
        canvas.text(16, middle + 4, name, font_weight="bold")
        canvas.line(LEFT, middle, width - 16, middle, stroke=RULE)
    holds: int | None = None
    for k, use in enumerate(uses):
        x, row = LEFT + k * COLUMN + (COLUMN - BOX) / 2, 2 * use.gpu
        canvas.text(x + BOX / 2, TOP - 16, f"{k + 1}", size=12, anchor="middle", fill=FAINT)
        holds = use.gpu if use.read is None else use.read
        _draw_box(canvas, x, TOP + row * LANE, use.words, use.gpu, use.read is not None and use.read != use.gpu)
        _draw_box(canvas, x, TOP + LANE, f"of cuda:{holds}", holds, False)
        _draw_arrow(canvas, x + BOX / 2, use.gpu, to_slot=use.read is None)
    if any(use.read not in (None, use.gpu) for use in uses):
        canvas.text(16, TOP + 3 * LANE + 8, CAPTION, size=12, fill=FAINT)
    return canvas.figure()


def _draw_box(canvas: Canvas, x: float, y: float, words: str, gpu: int, away: bool) -> None:
    colour = gpu_colour(gpu)
    canvas.rect(x, y, BOX, HEIGHT, fill=blend(colour, 0.3) if away else colour, stroke=INK, stroke_width=0.8, rx=5)
    if away:
        canvas.hatch(x, y, BOX, HEIGHT, stroke=blend(colour, 0.75))
        canvas.rect(x + 8, y + 6, BOX - 16, HEIGHT - 12, fill=colour, rx=4)
    canvas.text(x + BOX / 2, y + HEIGHT / 2 + 4, words, size=12, anchor="middle", fill=ink_on(colour))


def _draw_arrow(canvas: Canvas, x: float, gpu: int, to_slot: bool) -> None:
    """Between a GPU's lane and the slot's: to the slot where something is kept, from it where it is read."""
    near, far = (TOP + HEIGHT, TOP + LANE) if gpu == 0 else (TOP + 2 * LANE, TOP + LANE + HEIGHT)
    start, end = (near, far) if to_slot else (far, near)
    back = 6 if end > start else -6
    canvas.line(x, start, x, end, stroke_width=1.6)
    canvas.polyline([(x - 5, end - back), (x, end), (x + 5, end - back)], stroke_width=1.6)


def _describe(uses: Sequence[Use], slot: str) -> str:
    told = []
    for use in uses:
        if use.read is None:
            told.append(f"cuda:{use.gpu} {use.words} writes {slot}")
        else:
            own = "its own" if use.read == use.gpu else "not its own"
            told.append(f"cuda:{use.gpu} {use.words} reads that of cuda:{use.read}, {own}")
    return "In order: " + "; ".join(told) + "."
