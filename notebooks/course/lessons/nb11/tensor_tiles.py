"""Placements of a small tensor on a mesh, drawn: for each GPU the tensor, with the tile that it holds filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.kit.figures.palette import blend, gpu_colour, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

CELL, GAP, TOP, HEAD, ROOM, LETTER = 24, 26, 66, 22, 18, 7.4
WHOLE, PARTIAL = 0.55, 0.18  # how strong the colour of a GPU is under a number that is right, and under a part of it


@dataclass(frozen=True)
class Tile:
    """What one GPU holds: a table of numbers whose first one is number (top, left) of the whole.

    partial: whether each number is only a part of the right one, to be added to those of the other GPUs.
    """

    values: Sequence[Sequence[float]]
    top: int = 0
    left: int = 0
    partial: bool = False

    @property
    def words(self) -> str:
        """Such as "rows 0 to 1, columns 2 to 3"."""
        rows, columns = len(self.values), len(self.values[0])
        part = "a part of the sum for " if self.partial else ""
        return f"{part}{_span('row', self.top, rows)}, {_span('column', self.left, columns)}"


def _span(what: str, first: int, count: int) -> str:
    return f"{what} {first}" if count == 1 else f"{what}s {first} to {first + count - 1}"


def tensor_tiles(placements: Mapping[str, Sequence[Tile]], shape: tuple[int, int], title: str) -> Figure:
    """Draw placement -> the tile of cuda:0, cuda:1, ..., a row for each placement, a column for each GPU.

    Raises ValueError when there is nothing to draw, when placements differ in their GPUs, or a tile leaves the tensor.
    """
    gpus = {len(tiles) for tiles in placements.values()}
    if len(gpus) != 1 or gpus == {0}:
        raise ValueError(f"`placements` must all have the same number of tiles, got {sorted(gpus)}")
    rows, columns = shape
    for name, tiles in placements.items():
        for tile in tiles:
            if tile.top + len(tile.values) > rows or tile.left + len(tile.values[0]) > columns:
                raise ValueError(f"{name}: a tile with {tile.words} leaves a tensor of shape {shape}")
    number = gpus.pop()
    left = 30 + LETTER * max(map(len, placements))
    width = max(left + number * (columns * CELL + GAP), 40 + 9.5 * len(title))
    step = rows * CELL + ROOM
    canvas = Canvas(width, TOP + HEAD + step * len(placements), title, _describe(placements), at=(16, 28))
    for gpu in range(number):
        x = left + gpu * (columns * CELL + GAP)
        canvas.rect(x + columns * CELL / 2 - 31, TOP - 20, 62, 20, fill=gpu_colour(gpu), rx=10)
        canvas.text(
            x + columns * CELL / 2, TOP - 5.5, f"cuda:{gpu}", size=12, anchor="middle", fill=ink_on(gpu_colour(gpu))
        )
    for row, (name, tiles) in enumerate(placements.items()):
        y = TOP + HEAD + row * step - 6
        canvas.text(16, y + rows * CELL / 2 + 5, name, size=13)
        for gpu, tile in enumerate(tiles):
            x = left + gpu * (columns * CELL + GAP)
            if tile.partial and gpu:
                canvas.text(x - GAP / 2, y + rows * CELL / 2 + 6, "+", size=18, anchor="middle", fill=FAINT)
            _draw_tile(canvas, tile, gpu, shape, x, y)
    return canvas.figure()


def _draw_tile(canvas: Canvas, tile: Tile, gpu: int, shape: tuple[int, int], x: float, y: float) -> None:
    rows, columns = shape
    for i in range(rows):
        for j in range(columns):
            canvas.rect(x + j * CELL, y + i * CELL, CELL, CELL, fill="none", stroke=RULE)
    colour = blend(gpu_colour(gpu), PARTIAL if tile.partial else WHOLE)
    for i, line in enumerate(tile.values):
        for j, value in enumerate(line):
            u, v = x + (tile.left + j) * CELL, y + (tile.top + i) * CELL
            canvas.rect(u, v, CELL, CELL, fill=colour, stroke=gpu_colour(gpu))
            canvas.text(u + CELL / 2, v + CELL / 2 + 4, f"{value:g}", size=11, anchor="middle", fill=ink_on(colour))
    height, width = len(tile.values) * CELL, len(tile.values[0]) * CELL
    outline = {"fill": "none", "stroke": INK, "stroke_width": 1.4}
    if tile.partial:
        outline["stroke_dasharray"] = "4 3"
    canvas.rect(x + tile.left * CELL, y + tile.top * CELL, width, height, **outline)


def _describe(placements: Mapping[str, Sequence[Tile]]) -> str:
    told = (
        f"{name}: " + "; ".join(f"cuda:{gpu} holds {tile.words}" for gpu, tile in enumerate(tiles))
        for name, tiles in placements.items()
    )
    return ". ".join(told) + "."
