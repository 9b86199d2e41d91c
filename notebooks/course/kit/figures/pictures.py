"""Bitmaps inside an SVG: a PNG written without compression, so that its bytes are the same everywhere.

Two zlib libraries compress the same pixels to different bytes, and nbval compares text; the stored blocks of RFC 1951
leave no choice.
"""

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.svg import INK, PAPER, Canvas
from frcnn_lite.ops import box_iou

STORED_BLOCK = 65535  # the most a stored block of the deflate format holds


def png(image: ArrayLike) -> bytes:
    """Encode (H, W, 3) uint8 as a PNG file (RGB, 8 bits)."""
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"`image` is {pixels.dtype} {pixels.shape}; it must be uint8 (H, W, 3)")
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)  # filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in chunks)


def draw_picture(
    canvas: Canvas,
    image: ArrayLike,
    x: float,
    y: float,
    side: float,
    encode: Callable[[NDArray[np.uint8]], bytes] = png,
) -> float:
    """Place a picture (3, H, W) uint8 with its longer edge `side` pixels long; returns the scale that was applied."""
    pixels = np.ascontiguousarray(np.moveaxis(np.asarray(image), 0, -1))
    scale = side / max(pixels.shape[:2])
    uri = "data:image/png;base64," + base64.b64encode(encode(pixels)).decode("ascii")
    canvas.image(x, y, pixels.shape[1] * scale, pixels.shape[0] * scale, uri)
    return scale


def draw_box(
    canvas: Canvas,
    box: Sequence[float],
    origin: tuple[float, float],
    scale: float,
    colour: str,
    dashes: str | None = None,
) -> None:
    """A box xyxy in pixels of the picture, with a white rim so that it shows on any ground."""
    place = placed(box, origin, scale)
    canvas.rect(*place, fill="none", stroke=PAPER, stroke_width=4, stroke_opacity=0.8)
    canvas.rect(*place, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dashes)


def placed(box: ArrayLike, origin: tuple[float, float], scale: float) -> tuple[float, float, float, float]:
    """Left, top, width and height on the canvas of a box xyxy in pixels of the picture."""
    x1, y1, x2, y2 = np.asarray(box, dtype=float).tolist()
    return origin[0] + x1 * scale, origin[1] + y1 * scale, (x2 - x1) * scale, (y2 - y1) * scale


def draw_legend(canvas: Canvas, x: float, entries: Iterable[tuple[str, str, str | None]], step: float) -> float:
    """Boxes of (words, colour, dashes), `step` apart, below the title; returns where the next one would stand."""
    for words, colour, dashes in entries:
        canvas.rect(x, 40, 18, 14, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dashes)
        canvas.text(x + 26, 52, words, size=12)
        x += step
    return x


def iou(box: NDArray, others: NDArray) -> NDArray:
    """Intersection over union (m,) of one box with others (m, 4)."""
    first, second = (torch.from_numpy(np.asarray(boxes, dtype=float)) for boxes in (box, others))
    return box_iou(first[None], second.view(-1, 4))[0].numpy()


def around(image: ArrayLike, boxes: NDArray, margin: float) -> tuple[NDArray, NDArray]:
    """The part of a picture (3, H, W) that holds all boxes and a margin, square inside it; its upper left (x, y)."""
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    middle, half = (low + high) / 2, (high - low).max() / 2 + margin
    corner = np.clip(np.floor(middle - half), 0, None).astype(int)
    (left, top), (right, bottom) = corner, np.ceil(middle + half).astype(int)
    return np.asarray(image)[:, top:bottom, left:right], corner


def draw_tag(canvas: Canvas, words: str, x: float, y: float, colour: str = INK) -> None:
    """A small label whose lower left corner is (x, y); `colour` edges it."""
    width = 7.2 * len(words) + 8 + 4 * sum(letter in "mwMW" for letter in words)
    canvas.rect(x, y - 16, width, 16, fill=PAPER, stroke=colour, stroke_width=1.5, rx=3)
    canvas.text(x + width / 2, y - 4, words, size=12, anchor="middle", font_weight="bold")


def tag_corner(box: ArrayLike, origin: tuple[float, float], scale: float, side: float) -> tuple[float, float]:
    """Lower left corner of a tag above the box, moved in where the picture ends."""
    x, y = (float(value) for value in np.asarray(box)[:2])
    return origin[0] + min(x * scale, side - 16), origin[1] + max(y * scale, 17)


def stored(data: bytes) -> bytes:
    """A zlib stream (RFC 1950) of stored deflate blocks."""
    blocks = [data[i : i + STORED_BLOCK] for i in range(0, len(data), STORED_BLOCK)] or [b""]
    stream = b"\x78\x01"
    for k, block in enumerate(blocks):
        stream += struct.pack("<BHH", k == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
    return stream + struct.pack(">I", zlib.adler32(data))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
