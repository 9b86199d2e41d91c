"""Plans for dividing a training over GPUs: what a GPU holds, against its memory, and how long a step takes."""

from collections.abc import Mapping
from dataclasses import dataclass

from course.kit.figures.palette import KIND_COLOURS
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

TOP, ROW, BAR, LENGTH, LETTER, SENT = 92, 40, 26, 380, 6.6, 150
CUT = 2.2  # bars end at so many times the memory; what is longer is cut off
GIGA = 1e9


@dataclass(frozen=True)
class Plan:
    """held: part -> bytes on the fullest GPU; sent: bytes that it sends in one step; sends, step: seconds of both."""

    held: Mapping[str, float]
    sent: float = 0.0
    sends: float = 0.0
    step: float = 0.0

    @property
    def total(self) -> float:
        """All that the GPU holds, in bytes."""
        return sum(self.held.values())


def plan_bars(plans: Mapping[str, Plan], memory: float, title: str) -> Figure:
    """Draw a bar of parts for each plan, a line at `memory` bytes, and whether the plan fits.

    Raises ValueError when there is no plan, when plans differ in their parts, or when there is no memory.
    """
    parts = [*next(iter(plans.values())).held] if plans else []
    if not parts or any([*plan.held] != parts for plan in plans.values()):
        raise ValueError(f"`plans` must all have the same parts, got {[[*plan.held] for plan in plans.values()]}")
    if memory <= 0:
        raise ValueError(f"`memory` must be more than 0 bytes, got {memory}")
    left = 32 + 7.4 * max(map(len, plans))
    most = min(max(memory * 1.1, *(plan.total for plan in plans.values())), CUT * memory)
    canvas = Canvas(
        left + LENGTH + 96 + SENT, TOP + ROW * len(plans) + 14, title, _describe(plans, memory), at=(16, 28)
    )
    x = left
    for part, colour in zip(parts, KIND_COLOURS, strict=False):
        canvas.rect(x, 46, 12, 12, fill=colour, rx=2)
        canvas.text(x + 18, 57, part, size=12, fill=FAINT)
        x += 40 + LETTER * len(part)
    beside = left + LENGTH + 12
    canvas.text(beside, 78, "one GPU holds", size=12, fill=FAINT)
    canvas.text(beside + 108, 78, "a step takes", size=12, fill=FAINT)
    for row, (name, plan) in enumerate(plans.items()):
        y = TOP + row * ROW
        fits = plan.total <= memory
        canvas.text(16, y + BAR / 2 + 4, name, size=13, font_weight="bold" if fits else None)
        _draw_bar(canvas, plan, left, y, LENGTH / most)
        canvas.text(beside, y + 12, gigabytes(plan.total), size=13, font_weight="bold")
        canvas.text(beside, y + 27, "fits" if fits else "too much", size=12, fill=INK if fits else FAINT)
        canvas.text(beside + 108, y + 12, f"{plan.step:.2f} s", size=13, font_weight="bold")
        canvas.text(beside + 108, y + 27, f"sends for {plan.sends:.2f} s", size=12, fill=FAINT)
    x = left + LENGTH * memory / most
    canvas.line(x, TOP - 8, x, TOP + ROW * len(plans) - 6, stroke_width=2, stroke_dasharray="6 3")
    canvas.text(x, TOP - 13, f"memory: {gigabytes(memory)}", size=12, anchor="middle")
    return canvas.figure()


def gigabytes(size: float) -> str:
    """12.3 GB; below 100 MB in MB."""
    return f"{size / GIGA:.1f} GB" if size >= GIGA / 10 else f"{size / 1e6:.1f} MB"


def _draw_bar(canvas: Canvas, plan: Plan, left: float, y: float, scale: float) -> None:
    is_cut = plan.total * scale > LENGTH + 0.01
    x, end = left, left + LENGTH - (16 if is_cut else 0)
    for size, colour in zip(plan.held.values(), KIND_COLOURS, strict=False):
        width = min(size * scale, end - x)
        canvas.rect(x, y, width, BAR, fill=colour, stroke=INK, stroke_width=0.6)
        x += width
    if is_cut:
        canvas.text(end + 3, y + BAR / 2 + 4, "...", size=13)


def _describe(plans: Mapping[str, Plan], memory: float) -> str:
    told = []
    for name, plan in plans.items():
        parts = ", ".join(f"{part} {gigabytes(size)}" for part, size in plan.held.items())
        ends = "fits" if plan.total <= memory else "is too much"
        seconds = f"in seconds: a step {plan.step:.2f}, sending {plan.sends:.2f}"
        told.append(f"{name}: {parts}; {gigabytes(plan.total)} {ends}; {seconds}")
    return f"A GPU has {gigabytes(memory)}. " + ". ".join(told) + "."
