"""A map computed in parts, one part of the rows on each GPU, beside that of one GPU; wrong pixels are marked."""

from itertools import groupby

import torch
from torch import Tensor

from course.kit.figures.palette import WRONG_COLOUR, blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, LEFT, TOP, SHADES, GAP = 8, 70, 66, 8, 44


def seam(whole: Tensor, joined: Tensor, title: str, gpus: int = 2) -> Figure:
    """Draw the map (H, W) of one GPU, and below it the one that was joined, with the pixels that differ from it.

    Raises ValueError when the shapes differ or `gpus` does not divide the rows.
    """
    rows, columns = whole.shape
    if whole.shape != joined.shape or rows % gpus:
        raise ValueError(f"two maps of the same shape, with rows for {gpus} GPUs: got {whole.shape} and {joined.shape}")
    wrong = ~torch.isclose(whole, joined)
    found = sorted({int(row) for row, _ in wrong.nonzero()})
    words = f"{int(wrong.sum())} of {wrong.numel()} pixels of the joined map are wrong, in rows {found}."
    step = rows * CELL + GAP
    canvas = Canvas(LEFT + columns * CELL + 60, TOP + 2 * step - 8, title, words, at=(16, 28))
    shades = ((whole - whole.min()) / (whole.max() - whole.min()) * (SHADES - 1)).round().int()
    for k, (name, marked) in enumerate((("one GPU", torch.zeros_like(wrong)), ("two GPUs, joined", wrong))):
        top = TOP + k * step
        canvas.text(LEFT, top - 8, name, font_weight="bold")
        for row in range(rows):
            pixels = list(zip(shades[row].tolist(), marked[row].tolist(), strict=True))
            for (shade, is_wrong), run in groupby(range(columns), pixels.__getitem__):
                cells = list(run)
                colour = WRONG_COLOUR if is_wrong else blend(INK, 0.85 * shade / (SHADES - 1))
                canvas.rect(LEFT + cells[0] * CELL, top + row * CELL, len(cells) * CELL, CELL, fill=colour)
        canvas.rect(LEFT, top, columns * CELL, rows * CELL, fill="none", stroke=RULE)
    share = rows // gpus * CELL
    for gpu in range(gpus):
        y = TOP + step + gpu * share
        canvas.rect(14, y + 1, 50, share - 2, fill=gpu_colour(gpu), rx=6)
        ink = ink_on(gpu_colour(gpu))
        canvas.text(39, y + share / 2 + 4, f"cuda:{gpu}", size=11, anchor="middle", fill=ink)
    for row in found:
        canvas.text(LEFT + columns * CELL + 6, TOP + step + row * CELL + 8, f"row {row}", size=10, fill=FAINT)
    return canvas.figure()
