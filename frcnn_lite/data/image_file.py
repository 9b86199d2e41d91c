"""Image files: read upright as RGB, or only looked at."""

from pathlib import Path

from PIL import Image, ImageOps

ORIENTATION = 0x0112  # EXIF; values from 5 on turn the picture by a quarter
PILLOWS_ERRORS = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)  # its ways to say "damaged"


def read_image(path: str | Path, annotated_size: tuple[int, int] | None = None) -> Image.Image:
    """The picture in a file as RGB, turned the way the camera was held.

    annotated_size: (width, height) that boxes were drawn on; where it is the size of the pixels as they are stored, and
    not that of the turned picture, the pixels are left as they are stored.
    Raises FileNotFoundError, or ValueError that names a file which cannot be read as a picture.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no image at {path}")
    try:
        with Image.open(path) as image:
            stored = annotated_size == image.size != _upright_size(image)
            return (image if stored else ImageOps.exif_transpose(image)).convert("RGB")
    except PILLOWS_ERRORS as error:
        raise ValueError(f"{path} cannot be read as an image: {error}") from error


def look_at_image(path: Path, annotated_size: tuple[int, int] | None) -> tuple[int, int]:
    """The (width, height) that `read_image` would give, after every byte has been decoded, at less than its cost.

    Raises ValueError for a file that is missing or damaged.
    """
    if not path.is_file():
        raise ValueError("there is no such image")
    try:
        with Image.open(path) as image:
            stored, upright = image.size, _upright_size(image)
            image.draft("RGB", (1, 1))  # a JPEG is decoded to an eighth of its size, which finds what is cut off too
            image.load()
    except PILLOWS_ERRORS as error:
        raise ValueError(f"cannot be read as an image: {error}") from error
    return stored if annotated_size == stored else upright


def upright_size(path: Path) -> tuple[int, int]:
    """The (width, height) of a picture turned the way the camera was held; only the head of the file is read.

    Raises ValueError for a file that is not a picture.
    """
    try:
        with Image.open(path) as image:
            return _upright_size(image)
    except PILLOWS_ERRORS as error:
        raise ValueError(f"cannot be read as an image: {error}") from error


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (height, width) if image.getexif().get(ORIENTATION, 1) >= 5 else (width, height)
