"""A short ranked list of boxes as precision over recall: a point for each box, and the area that COCO measures."""

from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure

LEFT, TOP, WIDTH, HEIGHT, FOOT = 58, 78, 520, 300, 46
FILL = KIND_COLOURS[1]
KEY = "filled: the best precision at this recall or a larger one; its area is AP"


def ranked_boxes(right: Sequence[bool], objects: int, title: str) -> Figure:
    """right: of each box, best score first, whether it is right; objects: how many there were to find."""
    hits = [sum(right[: k + 1]) for k in range(len(right))]
    points = [(hit / objects, hit / rank) for rank, hit in enumerate(hits, start=1)]
    steps = [(recall, max(precision for r, precision in points if r >= recall)) for recall, _ in points]
    end = points[-1][0] if points else 0.0
    found = f"{hits[-1] if hits else 0} of {objects} objects found"
    told = "; ".join(
        f"{'right' if hit else 'wrong'}, recall {r:.2f}, precision {p:.2f}" for hit, (r, p) in _pairs(right, points)
    )
    canvas = Canvas(LEFT + WIDTH + 24, TOP + HEIGHT + FOOT, title, f"{found}. Box by box: {told}.", at=(16, 26))
    _draw_legend(canvas)
    corners, before = [_place(0, 0)], 0.0
    for recall, best in steps:
        if recall > before:
            corners += [_place(before, best), _place(recall, best)]
            before = recall
    canvas.polyline([*corners, _place(end, 0)], fill=blend(FILL, 0.35), stroke="none")
    x, y = _place(end, 1)
    canvas.hatch(x, y, WIDTH * (1 - end), HEIGHT, stroke=RULE)
    _draw_axes(canvas)
    canvas.polyline([_place(*point) for point in points], stroke=INK, stroke_width=1)
    for rank, (hit, (recall, precision)) in enumerate(_pairs(right, points), start=1):
        x, y = _place(recall, precision)
        ground = KIND_COLOURS[0] if hit else PAPER
        canvas.circle(x, y, 10, fill=ground, stroke=KIND_COLOURS[0] if hit else KIND_COLOURS[2], stroke_width=2)
        canvas.text(x, y + 4, rank, size=11, anchor="middle", fill=ink_on(ground))
    if end < 1:
        x, y = _place((1 + end) / 2, 0.5)
        canvas.rect(x - 50, y - 12, 100, 18, fill=PAPER)
        canvas.text(x, y + 2, "never reached", size=12, anchor="middle", fill=FAINT)
    return canvas.figure()


def _pairs(right: Sequence[bool], points: Sequence[tuple[float, float]]) -> list[tuple[bool, tuple[float, float]]]:
    return list(zip(right, points, strict=True))


def _place(recall: float, precision: float) -> tuple[float, float]:
    return LEFT + WIDTH * recall, TOP + HEIGHT * (1 - precision)


def _draw_legend(canvas: Canvas) -> None:
    for x, words, fill, edge in (
        (24, "right", KIND_COLOURS[0], KIND_COLOURS[0]),
        (96, "wrong", PAPER, KIND_COLOURS[2]),
    ):
        canvas.circle(x, 48, 7, fill=fill, stroke=edge, stroke_width=2)
        canvas.text(x + 13, 52, words, size=12)
    canvas.text(176, 52, KEY, size=12, fill=FAINT)


def _draw_axes(canvas: Canvas) -> None:
    for share in (0, 0.25, 0.5, 0.75, 1):
        (left, y), (x, floor) = _place(0, share), _place(share, 0)
        canvas.line(left, y, left + WIDTH, y, stroke=RULE)
        canvas.text(left - 8, y + 4, f"{share:g}", size=12, anchor="end", fill=FAINT)
        canvas.text(x, floor + 18, f"{share:g}", size=12, anchor="middle", fill=FAINT)
    canvas.text(
        LEFT + WIDTH / 2,
        TOP + HEIGHT + 38,
        "recall: the part of all objects that is found",
        size=12,
        anchor="middle",
        fill=FAINT,
    )
    canvas.text(
        16,
        TOP + HEIGHT / 2,
        "precision",
        size=12,
        anchor="middle",
        fill=FAINT,
        transform=f"rotate(-90 16 {TOP + HEIGHT / 2:g})",
    )
