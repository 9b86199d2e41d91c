"""Backgrounds: crops of the two photographs that come with scikit-learn (china.jpg, flower.jpg; 640x427 pixels)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from frcnn_lite.data.digits import Split, bundled

TEST_COLUMNS = 214  # the right third of each photograph is seen by test scenes only
MAX_CROP = TEST_COLUMNS  # a larger crop would not fit there


@lru_cache(maxsize=2)
def load_photographs(split: Split) -> tuple[NDArray[np.uint8], ...]:
    """The part of each photograph that belongs to one split, (3, H, W) uint8 RGB, decoded once per process."""
    part = slice(None, -TEST_COLUMNS) if split == "train" else slice(-TEST_COLUMNS, None)
    photographs = (np.asarray(Image.open(bundled(f"images/{name}.jpg"))) for name in ("china", "flower"))
    return tuple(np.ascontiguousarray(image[:, part].transpose(2, 0, 1)) for image in photographs)


def crop_photograph(split: Split, size: int, draws: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A square crop (3, size, size) uint8, mirrored half of the time, under brighter or darker light.

    Args:
        size: pixels, at most `MAX_CROP`.
        draws: (6,) uniform numbers in [0, 1) that decide everything.
    """
    which, top, left, mirror, light, fade = draws
    photographs = load_photographs(split)
    photograph = photographs[int(which * len(photographs))]
    y = int(top * (photograph.shape[1] - size + 1))
    x = int(left * (photograph.shape[2] - size + 1))
    crop = photograph[:, y : y + size, x : x + size]
    if mirror < 0.5:
        crop = crop[:, :, ::-1]
    # A table of 256 entries instead of arithmetic on every pixel: contrast down to a half, light up or down by a fifth.
    contrast = 1.0 - 0.5 * fade
    levels = 128 + contrast * (np.arange(256) - 128) + 102 * (light - 0.5)
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)[crop]
