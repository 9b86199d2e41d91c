"""A picture of at most 256 colours as a PNG, a third of the bytes of one that writes every pixel's three channels."""

import struct

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course.kit.figures.pictures import chunk, stored

COLOURS = 256


def indexed_png(image: ArrayLike) -> bytes:
    """Encode (H, W, 3) uint8 as a PNG with a palette; pictures of more colours lose some, by median cut.

    The same bytes everywhere: whole numbers, stable sorts, and no compression (see `pictures`).
    """
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"`image` is {pixels.dtype} {pixels.shape}; it must be uint8 (H, W, 3)")
    height, width, _ = pixels.shape
    palette, indices = _median_cut(pixels.reshape(-1, 3))
    lines = np.concatenate([np.zeros((height, 1), np.uint8), indices.reshape(height, width)], axis=1)  # filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", stored(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in chunks)


def _median_cut(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """At most 256 colours (n, 3) and which of them stands for each pixel (P,).

    The group of colours that is widest in a channel is cut at its median until there are enough groups (P. Heckbert,
    "Color image quantization for frame buffer display", 1982).
    """
    colours, inverse, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    groups = [np.arange(len(colours))]
    spans = [_span(colours)]
    while len(groups) < COLOURS and max(spans)[0] > 0:
        widest = max(range(len(groups)), key=lambda k: spans[k][0])
        members, channel = groups[widest], spans[widest][1]
        members = members[np.argsort(colours[members, channel], kind="stable")]
        seen = counts[members].cumsum()
        cut = int(np.clip(np.searchsorted(seen, seen[-1] // 2) + 1, 1, len(members) - 1))
        halves = members[:cut], members[cut:]
        groups[widest : widest + 1] = halves
        spans[widest : widest + 1] = [_span(colours[half]) for half in halves]
    palette, owner = np.zeros((len(groups), 3), np.uint8), np.zeros(len(colours), np.uint8)
    for k, members in enumerate(groups):
        weights = counts[members, None]
        palette[k] = (colours[members] * weights).sum(axis=0) // weights.sum()
        owner[members] = k
    return palette, owner[inverse.reshape(-1)]


def _span(colours: NDArray[np.uint8]) -> tuple[int, int]:
    """How far the colours (n, 3) of a group reach in their widest channel, and which that is."""
    reach = colours.max(axis=0).astype(int) - colours.min(axis=0)
    return int(reach.max()), int(reach.argmax())
