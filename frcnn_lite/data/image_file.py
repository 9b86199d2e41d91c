"""Image files: read upright as RGB, or only looked at."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

ORIENTATION = 0x0112  # EXIF; values from 5 to 8 turn the picture by a quarter
FLAT = 16  # of 256 levels; deep pictures of three channels, of which Pillow reads the upper 8 bits, can come out so


class Look(NamedTuple):
    """How an image file looks without keeping its pixels.

    Attributes:
        size: (width, height) as `read_image` gives it.
        turned: whether the file says that the camera was turned.
        in_doubt: whether the annotated size leaves open if boxes were drawn on the turned picture.
        flat: whether no channel has more than a few levels, so that nothing can be seen.
    """

    size: tuple[int, int]
    turned: bool
    in_doubt: bool
    flat: bool


def read_image(path: str | Path, annotated_size: tuple[int, int] | None = None) -> Image.Image:
    """The picture in a file as RGB, turned the way the camera was held.

    Numbers of more than 8 bits are stretched: the darkest thousandth of the pixels is black, the brightest white.

    Args:
        annotated_size: (width, height) that boxes were drawn on. Where it is the size of the pixels as they are stored,
            and not that of the turned picture, the pixels are left as they are stored.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file cannot be read as a picture.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no image at {path}")
    try:
        with Image.open(path) as image:
            stored = annotated_size == image.size != _upright_size(image)
            return _rgb(image if stored else ImageOps.exif_transpose(image))
    except Exception as error:  # Pillow has an exception of nearly every kind for a damaged file
        raise ValueError(f"{path} cannot be read as an image: {error}") from error


def look_at_image(path: Path, annotated_size: tuple[int, int] | None) -> Look:
    """Look at the picture that `read_image` would give, after every byte has been decoded, at less than its cost.

    Raises ValueError for a file that is missing or damaged.
    """
    if not os.path.isfile(path):  # False also for a name that no file can have
        raise ValueError("there is no such image")
    try:
        with Image.open(path) as image:
            stored, upright, turned = image.size, _upright_size(image), _orientation(image) > 1
            image.draft("RGB", (1, 1))  # a JPEG is decoded to an eighth of its size, which finds what is cut off too
            image.load()
            deep = _is_deep(image)  # Pillow knows no extrema of some of these
            levels = [[f(np.asarray(image)) for f in (np.min, np.max)]] if deep else image.getextrema()
            spans = np.ptp(np.reshape(levels, (-1, 2)), axis=1)
            flat = bool((spans <= (0 if deep or image.mode in "1P" else FLAT)).all())
    except Exception as error:
        raise ValueError(f"cannot be read as an image: {error}") from error
    in_doubt = turned and (stored == upright or annotated_size is None)
    return Look(stored if annotated_size == stored else upright, turned, in_doubt, flat)


def upright_size(path: Path) -> tuple[int, int]:
    """The (width, height) of a picture turned the way the camera was held; only the head of the file is read.

    Raises ValueError for a file that is not a picture.
    """
    try:
        with Image.open(path) as image:
            return _upright_size(image)
    except Exception as error:
        raise ValueError(f"cannot be read as an image: {error}") from error


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if _orientation(image) >= 5 else (width, height)


def _orientation(image: Image.Image) -> int:
    found = image.getexif().get(ORIENTATION, 1)
    return found if found in range(1, 9) else 1  # cameras write 0, and damaged files anything


def _is_deep(image: Image.Image) -> bool:
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _rgb(image: Image.Image) -> Image.Image:
    """8 bits a channel. Of a deeper picture Pillow would cut off all that is above 255."""
    if _is_deep(image):
        values = np.asarray(image).astype(np.float64)
        finite = values[np.isfinite(values)]
        low, high = np.quantile(finite, (0.001, 0.999)) if finite.size else (0.0, 0.0)
        if low == high and finite.size:  # an object of less than a thousandth
            low, high = finite.min(), finite.max()
        parts = np.nan_to_num((values - low) / ((high - low) or 1.0), nan=0.0).clip(0, 1)
        image = Image.fromarray((parts * 255).round().astype(np.uint8))
    return image.convert("RGB")
