"""The cast on one sheet: ten digits, and the colours of the GPUs."""

from course.kit.figures.digits import cast, draw_digit
from course.kit.figures.palette import CPU_COLOUR, GPU_COLOURS, LOST_COLOUR, ink_on
from course.kit.figures.svg import FAINT, PAPER, Canvas, Figure

LEFT, STEP, TILE = 92, 62, 48


def cast_sheet() -> Figure:
    """Ten digits, the rows of every small batch, and the colours of the GPUs, of the CPU and of what is lost."""
    words = (
        "Ten handwritten digits, 0 to 9, stand for rows 0 to 9 of a batch. GPU 0 is blue, 1 orange, 2 green, 3 pink, "
        "4 light blue, 5 red, 6 yellow, 7 black; the CPU is grey, and what no replica receives is hatched."
    )
    canvas = Canvas(LEFT + 10 * STEP + 16, 190, "The cast", words, at=(16, 26))
    canvas.text(16, 76, "rows", font_weight="bold")
    for row, face in enumerate(cast()):
        draw_digit(canvas, face, LEFT + row * STEP, 44, TILE)
        canvas.text(LEFT + row * STEP + TILE / 2, 112, row, size=12, anchor="middle", fill=FAINT)
    canvas.text(16, 152, "devices", font_weight="bold")
    chips = [(f"cuda:{k}", colour) for k, colour in enumerate(GPU_COLOURS)] + [("cpu", CPU_COLOUR)]
    for k, (name, colour) in enumerate(chips):
        canvas.rect(LEFT + k * STEP - 4, 136, 56, 24, fill=colour, rx=12)
        canvas.text(LEFT + k * STEP + 24, 152.5, name, size=12, anchor="middle", fill=ink_on(colour))
    canvas.rect(LEFT + 9 * STEP - 4, 136, 56, 24, fill=PAPER, stroke=LOST_COLOUR, rx=4)
    canvas.hatch(LEFT + 9 * STEP - 3, 137, 54, 22, stroke=LOST_COLOUR)
    canvas.text(LEFT + 9 * STEP + 24, 178, "lost", size=12, anchor="middle", fill=FAINT)
    return canvas.figure()
