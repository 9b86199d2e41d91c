"""Pictures and tensors side by side: photographs with boxes, and maps of numbers as heat maps with the same boxes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.indexed_png import indexed_png
from course.kit.figures.palette import KIND_COLOURS, blend, channels
from course.kit.figures.pictures import draw_box, draw_legend, draw_picture, draw_tag, placed, tag_corner
from course.kit.figures.svg import FAINT, INK, PAPER, RULE, Canvas, Figure

GAP, TOP, LINE, LETTER = 14, 44, 16, 6.6
INDIGO, TEAL, WINE, OLIVE, ROSE, SAND = KIND_COLOURS
# Colour and dashes of each kind of box; none of them is the colour of a GPU.
STYLES: dict[str, tuple[str, str | None]] = {
    "true box": (INK, "5 3"),
    "anchor": (INDIGO, None),
    "proposal": (WINE, None),
    "object": (WINE, None),
    "background": (OLIVE, "2 3"),
    "right": (TEAL, None),
    "wrong": (WINE, None),
    "where nobody has looked": (INK, None),
    "found": (WINE, None),
    "as written": (WINE, None),
}
THIN = {"anchor", "proposal", "background", "object"}  # many of a kind: lines without a rim
Numbers = ArrayLike | torch.Tensor  # a tensor may lie on any device
STOPS = (PAPER, TEAL, INDIGO)  # from low to high, darker all the way


@dataclass(frozen=True)
class Panel:
    """A picture (3, H, W) uint8, or a map (h, w) of numbers that is drawn as a heat map.

    boxes: kind (see `STYLES`) -> (n, 4) xyxy in pixels; tags: kind -> a word for each of its boxes. low, high: the ends
    of the colours of a map, its own extremes where they are None. kinds: value -> (words, colour), for a map of a few
    values that mean something. pixels: how many the longer side of what is shown has, where that is not a picture's.
    """

    values: Numbers
    caption: str
    boxes: Mapping[str, Numbers] = field(default_factory=dict)
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    kinds: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    pixels: float = 128

    @property
    def is_map(self) -> bool:
        return _array(self.values).ndim == 2

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers that have the first and the last colour."""
        values = numbers(self.values)
        low = float(values.min()) if self.low is None else self.low
        return low, float(values.max()) if self.high is None else self.high

    def rows(self, kind: str) -> NDArray:
        return numbers(self.boxes[kind]).reshape(-1, 4)


def panels(shown: Sequence[Panel], title: str, columns: int = 3, side: int = 200) -> Figure:
    """Panels in reading order, each with its caption below; what the boxes are stands once, above.

    Raises ValueError for no panel, an unknown kind of box, and a picture that is neither (3, H, W) nor (h, w).
    """
    if not shown:
        raise ValueError("`shown` is empty: name at least one panel")
    for panel in shown:
        _check(panel)
    columns = min(columns, len(shown))
    used = [kind for kind in STYLES if any(kind in panel.boxes for panel in shown)]
    legend = [(kind, *STYLES[kind]) for kind in used]
    values = dict(entry for panel in shown for entry in panel.kinds.values())
    top = TOP + (24 if legend or values else 0)
    below = LINE * max(panel.caption.count("\n") + 1 for panel in shown)
    below += 26 if any(panel.is_map and not panel.kinds for panel in shown) else 10
    lines = -(-len(shown) // columns)
    step = side + below + GAP
    legend_width = sum(map(_room, [*used, *values])) + GAP
    width = max(GAP + columns * (side + GAP), 2 * GAP + 9 * len(title), legend_width)
    canvas = Canvas(width, top + lines * step, title, _describe(shown), at=(GAP, 26))
    x = float(GAP)
    for entry in legend:
        draw_legend(canvas, x, [entry], step=0)
        x += _room(entry[0])
    for words, colour in values.items():
        canvas.rect(x, 40, 14, 14, fill=colour, stroke=INK, stroke_width=0.6)
        canvas.text(x + 22, 52, words, size=12)
        x += _room(words)
    for k, panel in enumerate(shown):
        _draw(canvas, panel, (GAP + k % columns * (side + GAP), top + k // columns * step), side)
    return canvas.figure()


def heat(values: Numbers, low: float, high: float) -> NDArray[np.uint8]:
    """A map (h, w) of numbers as a picture (3, h, w): light where it is low, dark where it is high."""
    share = ((numbers(values) - low) / ((high - low) or 1)).clip(0, 1)
    stops = np.array([channels(colour) for colour in STOPS], dtype=float)
    places = np.linspace(0, 1, len(STOPS))
    return np.stack([np.interp(share, places, stops[:, c]) for c in range(3)]).round().astype(np.uint8)


def numbers(values: Numbers) -> NDArray:
    """An array of floats, from whatever holds them."""
    return _array(values).astype(float)


def _array(values: Numbers) -> NDArray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def draw_scale(canvas: Canvas, x: float, y: float, width: float, ends: tuple[float, float]) -> None:
    """The colours of a heat map from left to right, with the numbers at their ends."""
    for k in range(24):
        low = PAPER if k < 12 else TEAL
        colour = blend(TEAL if k < 12 else INDIGO, (k % 12 + 0.5) / 12, low)
        canvas.rect(x + 34 + k * (width - 68) / 24, y, (width - 68) / 24 + 0.5, 8, fill=colour)
    canvas.rect(x + 34, y, width - 68, 8, fill="none", stroke=RULE)
    for end, at, anchor in zip(ends, (x + 29, x + width - 29), ("end", "start"), strict=True):
        canvas.text(at, y + 8, _short(end), size=11, anchor=anchor, fill=FAINT)


def _short(value: float) -> str:
    words = f"{value:.1f}"
    return "0" if words in ("0.0", "-0.0") else words.removesuffix(".0").replace("-", "−")


def _check(panel: Panel) -> None:
    shape = _array(panel.values).shape
    if len(shape) != 2 and (len(shape) != 3 or shape[0] != 3):
        raise ValueError(f"{panel.caption!r} has shape {shape}; it must be a picture (3, H, W) or a map (h, w)")
    for kind in panel.boxes:
        if kind not in STYLES:
            raise ValueError(f"{kind!r} is not a kind of box; there are {sorted(STYLES)}")


def _room(kind: str) -> float:
    return 44 + LETTER * len(kind)


def _draw(canvas: Canvas, panel: Panel, origin: tuple[float, float], side: float) -> None:
    x, y = origin
    if panel.kinds:
        values = _array(panel.values)
        picture = np.zeros((3, *values.shape), dtype=np.uint8)
        for value, (_, colour) in panel.kinds.items():
            picture[:, values == value] = np.array(channels(colour), dtype=np.uint8)[:, None]
    else:
        picture = heat(panel.values, *panel.ends) if panel.is_map else _array(panel.values)
    draw_picture(canvas, picture, x, y, side, indexed_png)
    canvas.rect(x, y, side, side, fill="none", stroke=RULE)
    extent = panel.pixels if panel.is_map else max(picture.shape[1:])
    scale = side / extent
    for kind in panel.boxes:
        _draw_boxes(canvas, panel, kind, origin, scale, side)
    bottom = y + side + 6
    if panel.is_map and not panel.kinds:
        draw_scale(canvas, x, bottom, side, panel.ends)
        bottom += 16
    for row, line in enumerate(panel.caption.split("\n")):
        canvas.text(x, bottom + 12 + LINE * row, line, size=12.5)


def _draw_boxes(
    canvas: Canvas, panel: Panel, kind: str, origin: tuple[float, float], scale: float, side: float
) -> None:
    colour, dashes = STYLES[kind]
    boxes, tags = panel.rows(kind), panel.tags.get(kind, ())
    for box in boxes:
        inside = box.clip(0, side / scale)  # an anchor may stand out of the picture
        if kind == "where nobody has looked":
            canvas.rect(*placed(inside, origin, scale), fill=PAPER, fill_opacity=0.4, stroke=INK)
            canvas.hatch(*placed(inside, origin, scale), step=9)
        elif kind in THIN:
            place = placed(inside, origin, scale)
            canvas.rect(*place, fill="none", stroke=PAPER, stroke_width=2.6, stroke_opacity=0.6)
            canvas.rect(*place, fill="none", stroke=colour, stroke_width=1.4, stroke_dasharray=dashes)
        else:
            draw_box(canvas, inside, origin, scale, colour, dashes)
    for box, words in zip(boxes, tags, strict=False):
        draw_tag(canvas, words, *tag_corner(box, origin, scale, side), colour)


def _describe(shown: Sequence[Panel]) -> str:
    return "; ".join(_words(panel) for panel in shown) + "."


def _words(panel: Panel) -> str:
    """The caption, what a map holds, and how many boxes of each kind there are, with their tags."""
    said = " ".join(panel.caption.split("\n"))
    values = _array(panel.values)
    if panel.kinds:
        said += ": " + ", ".join(f"{int((values == value).sum())} {words}" for value, (words, _) in panel.kinds.items())
    elif panel.is_map:
        low, high = panel.ends
        said += f": {values.shape[0]} x {values.shape[1]} numbers from {_short(low)} to {_short(high)}"
    for kind in panel.boxes:
        count, tags = len(panel.rows(kind)), panel.tags.get(kind, ())
        said += f", {count} boxes marked {kind}" + (f" ({', '.join(tags)})" if len(tags) else "")
    return said
