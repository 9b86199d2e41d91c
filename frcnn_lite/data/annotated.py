"""A picture and its objects as an annotation file names them: what the readers of VOC, COCO and YOLO all give."""

from collections.abc import Iterable
from pathlib import Path, PureWindowsPath
from typing import NamedTuple
from zlib import crc32

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".jfif", ".ppm", ".pgm", ".avif")
HELD_OUT = 5  # where data has no splits of its own, every fifth picture is for the test


class Object(NamedTuple):
    """One object as its annotation describes it.

    Attributes:
        box: xyxy, continuous pixels, as annotated.
        name: of its class.
        ignored: counts neither for nor against a detection.
        crowd: is a region of many objects.
        where: what follows the picture's source to name the place of this object there, such as ":3" for a line.
    """

    box: tuple[float, float, float, float]
    name: str
    ignored: bool = False
    crowd: bool = False
    where: str = ""


class Picture(NamedTuple):
    """One picture as its annotation describes it.

    Attributes:
        file: the image.
        source: the file to look at when the annotation is wrong.
        size: (width, height) as annotated; None where that is missing.
        objects: all that are annotated.
        form: the four numbers by which its file writes a box, of `FORMS` in `hints`.
    """

    file: Path
    source: str
    size: tuple[int, int] | None
    objects: tuple[Object, ...]
    form: str = "two corners"


def path_inside(folder: Path, name: str) -> Path:
    """`folder / name`. Raises ValueError for a name that leads elsewhere: annotations come from strangers."""
    parsed = PureWindowsPath(name)  # knows both kinds of slashes, and drives
    if parsed.anchor or ".." in parsed.parts:
        raise ValueError(f"the name {name!r} leads out of {folder.name}/")
    return folder / name


def images_in(folder: Path) -> list[Path]:
    """The image files in `folder` itself, by name; none where there is no such folder."""
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(file for file in files if file.suffix.lower() in IMAGE_ENDINGS)


def hold_out(names: Iterable[str]) -> dict[str, list[str]]:
    """The splits of data that has none of its own: "all", "train", and a fifth of the pictures, "test".

    The fifth is that of the lowest checksums: the same on every machine and in every format, since folders and the
    ending of an image are no part of its name, and nearly the same when pictures are added.
    """
    every = sorted(names)
    count = max(round(len(every) / HELD_OUT), min(1, len(every) - 1))
    held = set(sorted(every, key=_checksum)[:count])
    return {"all": every, "train": [name for name in every if name not in held], "test": sorted(held)}


def _checksum(name: str) -> tuple[int, str]:
    short = PureWindowsPath(name).name
    short = short[: -len(ending)] if (ending := PureWindowsPath(short).suffix).lower() in IMAGE_ENDINGS else short
    return crc32(short.encode(errors="surrogatepass")), name
