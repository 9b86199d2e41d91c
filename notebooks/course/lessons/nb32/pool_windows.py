"""The windows of adaptive pooling above those of the fixed pooling that the formula gives."""

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, ROW, BAR, LEFT, TOP = 26, 26, 16, 150, 74

Window = tuple[int, int]


def pool_windows(size: int, output: int) -> Figure:
    """`size` cells pooled to `output`, each window a bar; a fixed window that is not the adaptive one is hatched.

    The fixed ones have stride floor(size / output), kernel size - (output - 1) * stride. 1 <= output <= size <= 40.
    """
    if not 1 <= output <= size <= 40:
        raise ValueError(f"want 1 <= output <= size <= 40, got size {size} and output {output}")
    adaptive, fixed = _adaptive(size, output), _fixed(size, output)
    wrong = sum(a != b for a, b in zip(adaptive, fixed, strict=True))
    title = f"{size} cells to {output}: " + (f"{wrong} of {output} windows differ" if wrong else "the windows agree")
    canvas = Canvas(LEFT + size * CELL + 24, TOP + 2 * output * ROW + 28, title, _describe(adaptive, fixed))
    canvas.text(18, 28, title, size=16, font_weight="bold")
    for cell in range(size):
        canvas.rect(LEFT + cell * CELL, TOP - 26, CELL, 18, fill="none", stroke=RULE)
        canvas.text(LEFT + (cell + 0.5) * CELL, TOP - 13, cell, size=11, anchor="middle", fill=FAINT)
    _bars(canvas, "adaptive", TOP, adaptive, adaptive)
    _bars(canvas, "fixed", TOP + output * ROW + 22, fixed, adaptive)
    return canvas.figure()


def _adaptive(size: int, output: int) -> list[Window]:
    return [(i * size // output, -(-(i + 1) * size // output)) for i in range(output)]


def _fixed(size: int, output: int) -> list[Window]:
    stride = size // output
    kernel = size - (output - 1) * stride
    return [(i * stride, i * stride + kernel) for i in range(output)]


def _bars(canvas: Canvas, name: str, top: float, windows: list[Window], right: list[Window]) -> None:
    canvas.text(18, top + 13, name, font_weight="bold")
    canvas.text(18, top + 30, _lengths(windows), size=12, fill=FAINT)
    for i, (window, expected) in enumerate(zip(windows, right, strict=True)):
        x, width, y = LEFT + window[0] * CELL, (window[1] - window[0]) * CELL, top + i * ROW
        same = window == expected
        colour = KIND_COLOURS[1] if same else KIND_COLOURS[2]
        canvas.rect(x + 1, y, width - 2, BAR, fill=blend(colour, 0.35), stroke=colour, rx=3)
        if not same:
            canvas.hatch(x + 1, y, width - 2, BAR, stroke=INK, stroke_width=0.8)


def _lengths(windows: list[Window]) -> str:
    lengths = sorted({end - start for start, end in windows})
    return " or ".join(map(str, lengths)) + (" cells" if lengths != [1] else " cell")


def _describe(adaptive: list[Window], fixed: list[Window]) -> str:
    def spans(windows: list[Window]) -> str:
        return ", ".join(f"{start} to {end - 1}" for start, end in windows)

    return f"Cells in each adaptive window: {spans(adaptive)}. In each fixed window: {spans(fixed)}."
