"""A canvas that writes SVG the same way every time: rounded numbers, no ids, nothing taken from the clock or a set.

nbval compares the markup of a figure as text, so a deterministic drawing is a checked drawing. `<title>` and `<desc>`
say in words what the picture shows; the text alternative of a notebook output is made of the same two.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from frcnn_lite.whole_file import whole_file

PAPER = "#ffffff"  # every figure brings its own paper, so that it reads the same in a light and in a dark JupyterLab
INK = "#1f2328"
FAINT = "#59636e"  # captions; 6:1 against the paper
RULE = "#d1d9e0"  # hairlines that carry no information
LEGIBLE = 2 / 3  # of its own size: a figure shrinks with the page down to here, then the page scrolls
FONT = "'Noto Sans', 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Figure:
    """A finished drawing: `markup` is a whole SVG document, `title` and `description` say the same in words."""

    markup: str
    title: str
    description: str

    @property
    def text(self) -> str:
        """The figure in words."""
        return f"{self.title}. {self.description}"

    def save(self, path: str | Path) -> None:
        """Write the SVG document to `path`, over a file that is there. Raises WriteError, which leaves that one."""
        with whole_file(Path(path), replace=True) as partial:
            partial.write_text(self.markup, encoding="utf-8")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.markup, "text/plain": self.text}


class Canvas:
    """Collects shapes; `figure()` closes it. Coordinates are pixels from the top left corner.

    `at`: where the title is written; None leaves it to the words for those who cannot see the figure.
    """

    def __init__(
        self, width: float, height: float, title: str, description: str, at: tuple[float, float] | None = None
    ) -> None:
        for name, words in (("title", title), ("description", description)):
            if not words.strip():
                raise ValueError(f"`{name}` is empty: a figure needs words for readers who cannot see it")
        self.width, self.height, self.title, self.description = width, height, title, description
        self._elements: list[str] = []
        self.rect(0, 0, width, height, fill=PAPER, rx=8)
        if at:
            self.text(*at, title, size=16, font_weight="bold")

    def rect(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """A rectangle; `rx` rounds its corners."""
        self._add("rect", x=x, y=y, width=width, height=height, **style)

    def circle(self, x: float, y: float, radius: float, **style: Any) -> None:
        """A circle around (x, y)."""
        self._add("circle", cx=x, cy=y, r=radius, **style)

    def line(self, x1: float, y1: float, x2: float, y2: float, **style: Any) -> None:
        """A straight line, one pixel wide unless `stroke_width` says otherwise."""
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, **{"stroke": INK, **style})

    def path(self, data: str, **style: Any) -> None:
        """An SVG path; `data` is written as it comes, so the caller rounds."""
        self._add("path", d=data, **style)

    def polyline(self, points: list[tuple[float, float]], **style: Any) -> None:
        """A line through `points`, not filled."""
        joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self._add("polyline", points=joined, **{"fill": "none", "stroke": INK, **style})

    def text(self, x: float, y: float, words: object, size: float = 13, **style: Any) -> None:
        """One line of text with its baseline at y; `anchor` is start, middle or end."""
        anchor = style.pop("anchor", "start")
        attributes = {"fill": INK, "font_size": size, "text_anchor": None if anchor == "start" else anchor, **style}
        self._elements.append(f"<text{_attributes(x=x, y=y, **attributes)}>{escape(str(words))}</text>")

    def image(self, x: float, y: float, width: float, height: float, uri: str) -> None:
        """A bitmap given as a data URI, its pixels kept sharp when enlarged."""
        self._add("image", x=x, y=y, width=width, height=height, href=uri, style="image-rendering:pixelated")

    def hatch(self, x: float, y: float, width: float, height: float, step: float = 6, **style: Any) -> None:
        """Diagonal lines clipped to a rectangle: the sign for "lost".

        Drawn line by line, because a `<pattern>` needs an id and ids of several figures collide on one page.
        """
        pieces = []
        for k in range(1, math.ceil((width + height) / step)):
            across = k * step  # the diagonal u + v = across, in coordinates of the rectangle
            low, high = max(0.0, across - height), min(width, across)
            ends = (x + low, y + across - low, x + high, y + across - high)
            pieces.append("M{} {}L{} {}".format(*map(number, ends)))
        self.path("".join(pieces), **{"stroke": INK, "stroke_width": 1.2, "fill": "none", **style})

    def figure(self) -> Figure:
        """The finished drawing."""
        width, height = number(self.width), number(self.height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" font-family={quoteattr(FONT)}'
            f' style="max-width:100%;min-width:{number(LEGIBLE * self.width)}px;height:auto">'
        )
        words = f"<title>{escape(self.title)}</title>\n<desc>{escape(self.description)}</desc>"
        return Figure("\n".join([head, words, *self._elements, "</svg>"]), self.title, self.description)

    def _add(self, element: str, **attributes: Any) -> None:
        self._elements.append(f"<{element}{_attributes(**attributes)}/>")


def number(value: float) -> str:
    """At most two decimals and no negative zero: the last bits of a sum differ between machines, a figure must not."""
    short = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _attributes(**attributes: Any) -> str:
    """` a="1" b-c="x"`; None leaves an attribute out."""
    written = []
    for name, value in attributes.items():
        if value is not None:
            shown = number(value) if isinstance(value, int | float) else str(value)
            written.append(f" {name.replace('_', '-')}={quoteattr(shown)}")
    return "".join(written)
