"""When a sharded net has which layer whole: layers as rows, the moments of a step as columns."""

from collections.abc import Sequence

from course.kit.figures.palette import KIND_COLOURS, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

LEFT, TOP, ROW, COLUMN, HEIGHT, LETTER = 78, 96, 44, 70, 36, 6.6
CAPTION = "filled: the whole layer lies on this rank; the thin part: what it keeps all the time"


def whole_layers(moments: Sequence[tuple[str, Sequence[bool]]], ranks: int, title: str) -> Figure:
    """Draw (moment, whether each layer is whole) in the order of time; a rank keeps 1 / `ranks` of a layer.

    A moment is a word and the number of a layer, "forward 2", or a word alone, "loss".
    Raises ValueError without moments, or where they do not tell of the same number of layers.
    """
    lengths = {len(whole) for _, whole in moments}
    if len(lengths) != 1 or ranks < 1:
        raise ValueError(f"`moments` must all tell of the same layers, got lengths {sorted(lengths)} and {ranks} ranks")
    layers = lengths.pop()
    width = max(LEFT + COLUMN * len(moments) + 16, 40 + 8.4 * len(title), 40 + LETTER * len(CAPTION))
    canvas = Canvas(width, TOP + ROW * layers + 40, title, _describe(moments), at=(16, 28))
    for column, (moment, whole) in enumerate(moments):
        x = LEFT + column * COLUMN
        word, _, number = moment.partition(" ")
        canvas.text(x + COLUMN / 2, TOP - 28, word, size=12, anchor="middle", fill=FAINT)
        canvas.text(x + COLUMN / 2, TOP - 12, number, size=12, anchor="middle", fill=FAINT)
        for row, is_whole in enumerate(whole):
            y = TOP + row * ROW
            canvas.rect(x + 3, y, COLUMN - 6, HEIGHT, fill="none", stroke=RULE, rx=3)
            height = HEIGHT if is_whole else HEIGHT / ranks
            fill = KIND_COLOURS[0] if is_whole else blend(KIND_COLOURS[0], 0.45)
            canvas.rect(x + 3, y + HEIGHT - height, COLUMN - 6, height, fill=fill, stroke=INK, stroke_width=0.6, rx=3)
    for row in range(layers):
        canvas.text(16, TOP + row * ROW + HEIGHT / 2 + 4, f"layer {row}", size=13, font_weight="bold")
    canvas.text(16, TOP + ROW * layers + 22, CAPTION, size=12, fill=FAINT)
    return canvas.figure()


def _describe(moments: Sequence[tuple[str, Sequence[bool]]]) -> str:
    told = []
    for moment, whole in moments:
        layers = [str(k) for k, is_whole in enumerate(whole) if is_whole]
        told.append(f"{moment}: {'layers ' + ', '.join(layers) if layers else 'none'}")
    return "Layers that are whole on one rank. " + "; ".join(told)
