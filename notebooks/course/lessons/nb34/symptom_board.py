"""Ten cases on a board: what each complains about, and whether it is solved."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from course.kit.figures.palette import RIGHT_COLOUR, WRONG_COLOUR, blend, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

ENDINGS = {"ends": "silent", "raises": "raises", "hangs": "hangs"}
WIDTH, TOP, ROW, GAP, COLUMNS = 560, 48, 62, 6, 66


@dataclass(frozen=True)
class Field:
    """A case. symptom: in a sentence; ending: how its run ended, "ends", "raises" or "hangs"."""

    title: str
    symptom: str
    ending: str
    solved: bool = False


def symptom_board(fields: Sequence[Field], title: str) -> Figure:
    """Draw the cases from top to bottom, red until they are solved. Raises ValueError where there is none."""
    if not fields:
        raise ValueError("`fields` must hold at least one case, got none")
    canvas = Canvas(WIDTH, TOP + len(fields) * ROW + 8, title, _describe(fields), at=(16, 30))
    for number, field in enumerate(fields, 1):
        _draw_field(canvas, number, field, TOP + (number - 1) * ROW)
    return canvas.figure()


def _draw_field(canvas: Canvas, number: int, field: Field, y: float) -> None:
    colour = RIGHT_COLOUR if field.solved else WRONG_COLOUR
    canvas.rect(12, y, WIDTH - 24, ROW - GAP, fill=blend(colour, 0.12), stroke=colour, stroke_width=1.5, rx=5)
    canvas.rect(12, y, 40, ROW - GAP, fill=colour, rx=5)
    sign = "✔" if field.solved else number
    canvas.text(32, y + 34, sign, size=16, anchor="middle", fill=ink_on(colour), font_weight="bold")
    canvas.text(62, y + 19, field.title, size=14, font_weight="bold")
    state = "repaired" if field.solved else ENDINGS[field.ending]
    canvas.text(WIDTH - 22, y + 19, state, size=13, anchor="end", fill=FAINT)
    for line, words in enumerate(wrap(field.symptom, COLUMNS)[:2]):
        canvas.text(62, y + 35 + 14 * line, words, size=13, fill=INK)


def _describe(fields: Sequence[Field]) -> str:
    told = (
        f"{number}, {field.title}: {'repaired' if field.solved else f'{ENDINGS[field.ending]}; {field.symptom}'}"
        for number, field in enumerate(fields, 1)
    )
    return ". ".join(told) + "."
