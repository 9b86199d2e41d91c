"""How evenly GPUs are filled: the fullest over the emptiest, a bar for each way of sharing the work."""

from collections.abc import Mapping, Sequence

from course.kit.figures.svg import FAINT, INK, Canvas, Figure
from course.lessons.nb06.memory_timeline import megabytes

BAR, ROW, TOP, LENGTH, LETTER = 26, 46, 78, 360, 7.4


def balance_bars(peaks: Mapping[str, Sequence[int]], title: str) -> Figure:
    """Draw name -> peak of each GPU in bytes; a dashed line stands at 1, where all GPUs are filled alike.

    Raises ValueError when there is nothing to draw, or for a GPU that held nothing.
    """
    if not peaks or any(not sizes or min(sizes) <= 0 for sizes in peaks.values()):
        raise ValueError(f"`peaks` must hold a positive number of bytes for each GPU, got {dict(peaks)}")
    ratios = {name: max(sizes) / min(sizes) for name, sizes in peaks.items()}
    left, longest = 32 + LETTER * max(32, *map(len, peaks)), max(ratios.values())
    height = TOP + ROW * len(peaks) + 26
    canvas = Canvas(left + LENGTH + 70, height, title, _describe(peaks, ratios), at=(16, 28))
    one = left + LENGTH / longest
    canvas.line(left, TOP - 8, left, height - 34, stroke=FAINT)
    canvas.text(one, TOP - 14, "1: all alike", size=12, anchor="middle", fill=FAINT)
    for row, (name, sizes) in enumerate(peaks.items()):
        y, length = TOP + ROW * row, LENGTH * ratios[name] / longest
        canvas.text(left - 10, y + 11, name, anchor="end")
        canvas.rect(left, y, length, BAR, fill=FAINT, rx=3)
        canvas.text(left + length + 8, y + 18, f"{ratios[name]:.2f}", size=14, font_weight="bold")
        words = f"fullest {megabytes(max(sizes))}, emptiest {megabytes(min(sizes))}"
        canvas.text(left - 10, y + 27, words, size=12, anchor="end", fill=FAINT)
    canvas.line(one, TOP - 8, one, height - 34, stroke=INK, stroke_width=1.5, stroke_dasharray="6 4")
    canvas.text(16, height - 12, "bars: peak of the fullest GPU, divided by that of the emptiest", 12, fill=FAINT)
    return canvas.figure()


def _describe(peaks: Mapping[str, Sequence[int]], ratios: Mapping[str, float]) -> str:
    told = (
        f"{name}: {ratios[name]:.2f} (fullest {megabytes(max(sizes))}, emptiest {megabytes(min(sizes))})"
        for name, sizes in peaks.items()
    )
    return "Peak of the fullest GPU over that of the emptiest. " + "; ".join(told) + "."
