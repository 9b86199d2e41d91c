"""Real handwritten digits as ink: the glyphs that come with scikit-learn, scaled and rotated.

The digits are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine
Learning Repository, 1998): 1797 pictures of 8x8 cells, each cell counting the ink of a 4x4 block (0..16).
"""

import math
from functools import lru_cache
from importlib import metadata
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Split = Literal["train", "test"]

CELLS = 8  # a glyph as it is bundled: 8x8 cells
MARGIN = 1  # an empty ring of cells, so that interpolation fades out instead of stopping at the border
SUBDIVISION = 4  # samples per cell after smoothing
TEST_DIGITS = 450  # the last ones; neighbours come from the same writers, so a contiguous cut keeps most writers apart

# Ink density at which a stroke begins and is opaque: steep enough for a crisp pen, soft enough not to look cut out.
EDGE_BEGIN, EDGE_END = 0.38, 0.62


class Glyphs(NamedTuple):
    """Smooth ink densities `fields` (N, 40, 40) float32 in 0..1, and the `labels` (N,) int64 in 0..9."""

    fields: NDArray[np.float32]
    labels: NDArray[np.int64]


def bundled(name: str) -> str:
    """A file of scikit-learn's datasets. The package is not imported, since that takes 0.8 s, most of it for SciPy."""
    return str(metadata.distribution("scikit-learn").locate_file(f"sklearn/datasets/{name}"))


def read_digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All digits as they are bundled: images (1797, 8, 8) of ink 0..16, and labels (1797,)."""
    rows = np.loadtxt(bundled("data/digits.csv.gz"), delimiter=",")
    return rows[:, :-1].reshape(-1, CELLS, CELLS), rows[:, -1].astype(np.int64)


@lru_cache(maxsize=2)
def load_glyphs(split: Split) -> Glyphs:
    """The digits of one split, smoothed once per process; no digit is in both splits.

    Cached rather than stored on a dataset, so that pickling a dataset for a worker process ships no pixels.
    """
    images, labels = read_digits()
    part = slice(None, -TEST_DIGITS) if split == "train" else slice(-TEST_DIGITS, None)
    cells = np.pad(images[part] / 16.0, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))
    upsample = _cubic_matrix(CELLS + 2 * MARGIN, SUBDIVISION)
    # Cells and weights are fractions with a power of two below the line, so every product and sum here is exact in
    # float64 and the fields are the same bit for bit whatever order a BLAS library adds in.
    fields = np.clip(upsample @ cells @ upsample.T, 0.0, 1.0)
    return Glyphs(fields.astype(np.float32), labels[part])


def draw_glyph(field: NDArray[np.float32], height: float, angle: float) -> NDArray[np.uint8]:
    """Scale and rotate one glyph and cut it tightly around its ink.

    Args:
        field: (40, 40) from `load_glyphs`.
        height: pixels that the 8 cells of the glyph span.
        angle: radians, clockwise.

    Returns:
        The opacity (h, w) uint8. Every border row and column holds a pixel of at least half opacity, so the array's own
        extent is the digit's box.
    """
    cos, sin = math.cos(angle), math.sin(angle)
    samples_per_pixel = CELLS * SUBDIVISION / height
    side = math.ceil(height * (1 + 2 * MARGIN / CELLS) * (abs(cos) + abs(sin)))
    offset = (np.arange(side, dtype=np.float32) - np.float32((side - 1) / 2)) * np.float32(samples_per_pixel)
    along, across = offset * np.float32(cos), offset * np.float32(sin)
    centre = np.float32((len(field) - 1) / 2)
    density = _bilinear(field, along[None, :] + across[:, None] + centre, along[:, None] - across[None, :] + centre)

    edge = np.clip((density - np.float32(EDGE_BEGIN)) * np.float32(1 / (EDGE_END - EDGE_BEGIN)), 0, 1)
    opacity = np.rint(edge * np.float32(255)).astype(np.uint8)
    ink = opacity >= 128
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return opacity[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _bilinear(field: NDArray[np.float32], x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sample `field` at real coordinates, clamped to it. Written out in NumPy because the resampling of image libraries
    changes in the last bit from release to release, and scenes have checksums."""
    last = len(field) - 1
    x, y = (np.clip(place, 0, np.float32(last - 1e-3)) for place in (x, y))
    left, top = x.astype(np.int32), y.astype(np.int32)
    fx, fy = x - left, y - top
    corner = top * len(field) + left
    flat = field.ravel()
    upper = flat[corner] * (1 - fx) + flat[corner + 1] * fx
    lower = flat[corner + len(field)] * (1 - fx) + flat[corner + len(field) + 1] * fx
    return upper * (1 - fy) + lower * fy


def _cubic_matrix(cells: int, subdivision: int) -> NDArray[np.float64]:
    """Rows that interpolate `cells` values at `cells * subdivision` places by cubic convolution, a = -1/2.

    R. G. Keys, "Cubic Convolution Interpolation for Digital Image Processing", IEEE Trans. ASSP 29(6), 1981.
    """
    places = (np.arange(cells * subdivision) + 0.5) / subdivision - 0.5
    distance = np.abs(places[:, None] - np.arange(cells)[None, :])
    near = (1.5 * distance - 2.5) * distance**2 + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
