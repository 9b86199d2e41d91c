"""Which tensors of a net came from a file, and which are as the net was made, for several files side by side."""

from collections.abc import Mapping, Sequence

from course.kit.figures.palette import RIGHT_COLOUR, blend
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

LEFT, TOP, ROW, COLUMN, PAD = 186, 84, 24, 128, 6


def loaded_names(names: Sequence[str], files: Mapping[str, tuple[Sequence[str], int, str]], title: str) -> Figure:
    """A row for each of the net's `names`; a column for each file: (names it lacks, names left over, what came of it).

    What was never in the file is hatched. Raises ValueError for a missing name that the net does not have.
    """
    for file, (missing, _, _) in files.items():
        if foreign := [name for name in missing if name not in names]:
            raise ValueError(f"{file!r} lacks {foreign[0]!r}, which is none of `names`")
    bottom = TOP + ROW * len(names)
    width = max(LEFT + COLUMN * len(files) + 14, 32 + 9.5 * len(title))
    canvas = Canvas(width, bottom + 62, title, _describe(names, files), at=(16, 28))
    for k, name in enumerate(names):
        canvas.text(LEFT - 10, TOP + ROW * k + 16, name, size=12, anchor="end", font_family="monospace")
    for words, y in (("left over in the file", bottom + 22), ("right", bottom + 46)):
        canvas.text(LEFT - 10, y, words, size=12, anchor="end", fill=FAINT)
    for k, (file, (missing, left_over, outcome)) in enumerate(files.items()):
        x = LEFT + COLUMN * k
        canvas.text(x + (COLUMN - PAD) / 2, TOP - 14, file, size=12, anchor="middle")
        for row, name in enumerate(names):
            _cell(canvas, x, TOP + ROW * row, name not in missing)
        canvas.text(x + (COLUMN - PAD) / 2, bottom + 22, left_over, anchor="middle")
        canvas.text(x + (COLUMN - PAD) / 2, bottom + 46, outcome, anchor="middle", font_weight="bold")
    return canvas.figure()


def _cell(canvas: Canvas, x: float, y: float, loaded: bool) -> None:
    place = (x, y + 1, COLUMN - PAD, ROW - 3)
    if loaded:
        canvas.rect(*place, fill=blend(RIGHT_COLOUR, 0.45), stroke=RIGHT_COLOUR, rx=3)
        canvas.text(x + (COLUMN - PAD) / 2, y + 16, "loaded", size=11, anchor="middle")
    else:
        canvas.rect(*place, fill="none", stroke=INK, stroke_width=0.6, rx=3)
        canvas.hatch(*place, stroke_width=0.7)


def _describe(names: Sequence[str], files: Mapping[str, tuple[Sequence[str], int, str]]) -> str:
    told = []
    for file, (missing, left_over, outcome) in files.items():
        lacks = f", without {', '.join(missing)}" if 0 < len(missing) < len(names) else ""
        left = f", {left_over} names of the file left over" if left_over else ""
        told.append(f"{file}: {len(names) - len(missing)} of {len(names)} tensors loaded{lacks}{left}, {outcome} right")
    return "; ".join(told) + "."
