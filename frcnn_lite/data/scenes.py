"""Detection scenes without a download: real handwritten digits over photographs, drawn from a seed.

Scene `i` is a function of (seed, split, i) alone. It does not matter in which order, process or epoch it is asked for.
"""

from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from frcnn_lite.data.batch import Scene
from frcnn_lite.data.digits import Split, draw_glyph, load_glyphs
from frcnn_lite.data.photographs import MAX_CROP, crop_photograph

MIN_SIZE = 64  # pixels: the largest digit, rotated, always fits
GLYPH_HEIGHT = (22.0, 48.0)  # pixels of the 8 cells; the ink itself is a little smaller
MAX_ANGLE = 0.3  # radians, about 17 degrees either way
MAX_OVERLAP = 0.25  # of the smaller of two boxes
PLACEMENT_TRIES = 8  # a crowded scene ends up with fewer digits than drawn, never with hidden ones
MIN_CONTRAST = 70.0  # grey levels between the ink and the mean of what is under it

GREY = np.array([0.299, 0.587, 0.114])  # luma of R, G, B (ITU-R BT.601)


class DigitScenes(Dataset[Scene]):
    """Pictures of several handwritten digits each, with a tight box around every digit's ink and labels 0..9.

    Holds five numbers and no pixels, so it is cheap to pickle into DataLoader workers, which load the digits
    themselves.

    Args:
        split: "train" or "test", which have different digits and different parts of the photographs.
        length: number of scenes.
        seed: chooses the series.
        size: side of the square picture in pixels, 64..214.
        digits: fewest and most digits of a scene, 0 <= fewest <= most.

    Raises:
        ValueError, TypeError: an argument is not as above.
        IndexError: an index is not below the length.
    """

    num_classes = 10
    class_names = tuple("0123456789")

    def __init__(
        self, split: Split, length: int, seed: int = 0, *, size: int = 128, digits: tuple[int, int] = (2, 6)
    ) -> None:
        if split not in get_args(Split):
            raise ValueError(f"`split` must be 'train' or 'test', got {split!r}")
        for name, value, least in (("length", length, 0), ("seed", seed, 0), ("size", size, MIN_SIZE)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"`{name}` must be an int, got {value!r}")
            if value < least:
                raise ValueError(f"`{name}` must be at least {least}, got {value}")
        if size > MAX_CROP:
            raise ValueError(f"`size` must be at most {MAX_CROP} (the photographs are no larger), got {size}")
        if len(digits) != 2 or not 0 <= digits[0] <= digits[1]:
            raise ValueError(f"`digits` must be (fewest, most) with 0 <= fewest <= most, got {digits!r}")
        self.split = split
        self.length = length
        self.seed = seed
        self.size = size
        self.digits = (int(digits[0]), int(digits[1]))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Scene:
        if not 0 <= index < self.length:  # also what ends a `for` loop over the dataset
            raise IndexError(f"scene {index} of {self.length}: indices run from 0 to {self.length - 1}")
        rng = _scene_rng(self.seed, self.split, int(index))
        canvas = crop_photograph(self.split, self.size, rng.random(6))
        fewest, most = self.digits
        boxes: list[tuple[int, int, int, int]] = []
        labels: list[int] = []
        for _ in range(fewest + int(rng.random() * (most - fewest + 1))):
            opacity, label = self._draw_digit(rng.random(3))
            box = self._find_place(opacity.shape, boxes, rng.random((PLACEMENT_TRIES, 2)))
            colour = rng.random(3)
            if box is not None:
                _paint(canvas, box, opacity, colour)
                boxes.append(box)
                labels.append(label)
        return Scene(
            torch.from_numpy(canvas),
            torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
            torch.tensor(labels, dtype=torch.int64),
            int(index),
        )

    def _draw_digit(self, draws: NDArray[np.float64]) -> tuple[NDArray[np.uint8], int]:
        which, scale, turn = draws
        glyphs = load_glyphs(self.split)
        chosen = int(which * len(glyphs.labels))
        # Evenly spread in the logarithm: as many digits between 22 and 32 pixels as between 32 and 48.
        height = GLYPH_HEIGHT[0] * (GLYPH_HEIGHT[1] / GLYPH_HEIGHT[0]) ** scale
        return draw_glyph(glyphs.fields[chosen], height, MAX_ANGLE * (2 * turn - 1)), int(glyphs.labels[chosen])

    def _find_place(
        self, shape: tuple[int, ...], boxes: list[tuple[int, int, int, int]], draws: NDArray[np.float64]
    ) -> tuple[int, int, int, int] | None:
        """The first of the drawn places where the digit hides little of the others; None when all are crowded."""
        height, width = shape
        for u, v in draws:
            x, y = int(u * (self.size - width + 1)), int(v * (self.size - height + 1))
            box = (x, y, x + width, y + height)
            if all(_overlap(box, other) <= MAX_OVERLAP for other in boxes):
                return box
        return None


def _scene_rng(seed: int, split: Split, index: int) -> np.random.Generator:
    """A generator of this scene's own. Only its `random()` is used: the plain 53 bits of a stream that NumPy keeps
    stable (NEP 19), where the streams of `integers()` or `normal()` may change with a release."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, get_args(Split).index(split), index))))


def _overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    """Area that two boxes share, as a fraction of the smaller one."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]))


def _paint(
    canvas: NDArray[np.uint8], box: tuple[int, int, int, int], opacity: NDArray[np.uint8], colour: NDArray[np.float64]
) -> None:
    """Lay ink over `canvas` (3, H, W) in place; the drawn colour is moved towards white or black until it can be read.

    Integer blending, so that a pixel cannot depend on how a processor rounds.
    """
    x1, y1, x2, y2 = box
    under = canvas[:, y1:y2, x1:x2]
    ground = float(GREY @ under.reshape(3, -1).mean(axis=1))
    ink = colour * 255
    missing = MIN_CONTRAST - abs(float(GREY @ ink) - ground)
    if missing > 0:
        away = 1 if ground < 128 else -1
        target = ground + away * MIN_CONTRAST
        ink = np.clip(ink + (target - float(GREY @ ink)), 0, 255)
    alpha = opacity.astype(np.uint16)
    solid = np.rint(ink).astype(np.uint16)[:, None, None]
    under[...] = (under * (255 - alpha) + solid * alpha + 127) // 255
