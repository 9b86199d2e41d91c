"""The weight of a convolution as blocks: which of them one GPU can multiply alone, and which need a second one."""

from collections.abc import Mapping

from torch import Tensor

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, GAP, LEFT, TOP = 14, 34, 18, 92


def weight_blocks(weights: Mapping[str, Tensor], blocks: int, title: str, gpus: int = 2) -> Figure:
    """Draw name -> weight (out, in, kh, kw), cut into `blocks` x `blocks`, whose channels are divided over `gpus`.

    Coloured: a block that is not zero, with input and output on this GPU. Hatched: input and output on different ones.
    Raises ValueError when there is no weight, or `blocks` does not divide its channels, or `gpus` does not divide
    `blocks`.
    """
    if not weights or blocks % gpus:
        raise ValueError(f"{len(weights)} weights in {blocks} blocks cannot be divided over {gpus} GPUs")
    used = {name: _blocks(weight, blocks) for name, weight in weights.items()}
    side = blocks * CELL
    told = {name: _counts(table, gpus) for name, table in used.items()}
    words = "; ".join(
        f"{name}: {own} blocks on one GPU, {between} between two GPUs" for name, (own, between) in told.items()
    )
    width = max(2 * LEFT + len(used) * (side + GAP) - GAP, 36 + 9.5 * len(title))
    canvas = Canvas(width, TOP + side + 46, title, f"{words}.", at=(16, 28))
    for k, (name, table) in enumerate(used.items()):
        x = LEFT + k * (side + GAP)
        canvas.text(x, 56, name, font_weight="bold")
        for gpu in range(gpus):
            span = side / gpus
            canvas.rect(x + gpu * span + 2, TOP - 24, span - 4, 18, fill=gpu_colour(gpu), rx=9)
            ink = ink_on(gpu_colour(gpu))
            canvas.text(x + (gpu + 0.5) * span, TOP - 11, f"cuda:{gpu}", size=11, anchor="middle", fill=ink)
        _draw(canvas, table, gpus, x)
        canvas.text(x, TOP + side + 18, f"{told[name][0]} on one GPU,", size=12, fill=FAINT)
        canvas.text(x, TOP + side + 34, f"{told[name][1]} between two", size=12, fill=FAINT)
    return canvas.figure()


def _blocks(weight: Tensor, blocks: int) -> list[list[bool]]:
    """Row -> column -> whether the block has a number that is not zero."""
    if weight.shape[0] % blocks or weight.shape[1] % blocks:
        raise ValueError(f"`blocks` is {blocks}: it must divide {tuple(weight.shape[:2])} channels")
    taps = weight.detach().abs().flatten(2).amax(2)
    found: list[list[bool]] = (taps.unflatten(0, (blocks, -1)).unflatten(2, (blocks, -1)).amax((1, 3)) > 0).tolist()
    return found


def _counts(table: list[list[bool]], gpus: int) -> tuple[int, int]:
    """How many blocks are used within a GPU, and how many between two."""
    share = len(table) // gpus
    places = [
        row // share == column // share
        for row, line in enumerate(table)
        for column, is_used in enumerate(line)
        if is_used
    ]
    return places.count(True), places.count(False)


def _draw(canvas: Canvas, table: list[list[bool]], gpus: int, x: float) -> None:
    share = len(table) // gpus
    for row, line in enumerate(table):
        for column, is_used in enumerate(line):
            place = x + column * CELL, TOP + row * CELL, CELL - 1, CELL - 1
            gpu = row // share
            if not is_used:
                canvas.rect(*place, fill="none", stroke=RULE, stroke_width=0.5)
            elif gpu == column // share:
                canvas.rect(*place, fill=blend(gpu_colour(gpu), 0.8))
            else:
                canvas.rect(*place, fill="none", stroke=INK, stroke_width=0.5)
                canvas.hatch(*place, step=4, stroke_width=0.8)
