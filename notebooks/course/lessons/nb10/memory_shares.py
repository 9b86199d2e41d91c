"""What one GPU holds under each plan: a bar of parts for each, on one scale."""

from collections.abc import Mapping

from course.kit.figures.palette import KIND_COLOURS, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

TOP, ROW, BAR, LENGTH, LETTER = 78, 38, 26, 460, 6.6
MEGA = 1e6


def memory_shares(plans: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw plan -> part -> bytes; the parts of all plans are the same, and keep their order and their colours.

    Raises ValueError when there is no plan, when parts differ, or for a negative size.
    """
    parts = [*next(iter(plans.values()), {})]
    if not parts or any([*plan] != parts for plan in plans.values()):
        raise ValueError(f"`plans` must all have the same parts, got {[[*plan] for plan in plans.values()]}")
    if any(size < 0 for plan in plans.values() for size in plan.values()):
        raise ValueError("`plans` has a negative size")
    left = 32 + 7.4 * max(map(len, plans))
    most = max(sum(plan.values()) for plan in plans.values()) or 1.0
    canvas = Canvas(left + LENGTH + 96, TOP + ROW * len(plans) + 8, title, _describe(plans), at=(16, 28))
    x = left
    for part, colour in zip(parts, KIND_COLOURS, strict=False):
        canvas.rect(x, 46, 12, 12, fill=colour, rx=2)
        canvas.text(x + 18, 57, part, size=12, fill=FAINT)
        x += 40 + LETTER * len(part)
    for row, (name, plan) in enumerate(plans.items()):
        y, x = TOP + row * ROW, left
        canvas.text(16, y + BAR / 2 + 4, name, size=13)
        for part, colour in zip(parts, KIND_COLOURS, strict=False):
            width = LENGTH * plan[part] / most
            canvas.rect(x, y, width, BAR, fill=colour, stroke=INK, stroke_width=0.6)
            words = f"{plan[part] / MEGA:.1f}"
            if width > LETTER * len(words) + 8:
                canvas.text(x + width / 2, y + BAR / 2 + 4, words, size=11, anchor="middle", fill=ink_on(colour))
            x += width
        canvas.text(x + 8, y + BAR / 2 + 4, f"{sum(plan.values()) / MEGA:.1f} MB", size=13, font_weight="bold")
    return canvas.figure()


def _describe(plans: Mapping[str, Mapping[str, float]]) -> str:
    told = (
        f"{name}: {', '.join(f'{part} {size / MEGA:.1f} MB' for part, size in plan.items())}"
        for name, plan in plans.items()
    )
    return "Held by the fullest GPU. " + "; ".join(told)
