"""Other views of the same pictures: mirrored, nearer or farther, in another light.

A few hundred pictures are shown a hundred times in ten minutes of training, and a detector soon knows them by heart.
All of it works on a whole `Batch` on the CPU, and what is drawn comes from outside, a row of numbers an image: an
image's view then depends neither on its batch nor on how many devices share that, and a resumed run draws it again.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from frcnn_lite.data.batch import PADDING_LABEL, Batch
from frcnn_lite.data.letterbox import GREY

VISIBLE = 0.4  # of a box's area: what is cut off further is nothing to learn from


@dataclass(frozen=True)
class Augmentation:
    """Other views of the pictures of a batch.

    Attributes:
        flip: fraction of pictures that are mirrored, 0..1.
        zoom: how much larger or smaller a picture becomes at most, 0..3; 0.25 is from 4/5 to 5/4.
        light: how much brighter or darker each colour becomes at most, 0..0.9; 0.2 is from 0.8 to 1.2.

    Raises:
        ValueError: a field is outside its range.
    """

    flip: float = 0.0
    zoom: float = 0.0
    light: float = 0.0

    DRAWS = 7  # numbers an image: for flip, zoom, its two offsets, and the three colours

    def __post_init__(self) -> None:
        for name, most in (("flip", 1.0), ("zoom", 3.0), ("light", 0.9)):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise ValueError(f"`{name}` must be between 0 and {most:g}, got {value!r}")

    def __call__(self, batch: Batch, keys: Tensor) -> Batch:
        """The batch, each picture changed by its own row of `keys` (B, DRAWS) float32, uniform in [0, 1)."""
        if self.flip > 0:
            batch = mirror(batch, keys[:, 0] < self.flip)
        if self.zoom > 0:
            scale = (1 + self.zoom) ** (
                2 * keys[:, 1].double() - 1
            )  # in float32 a batch's length shows in the last bit
            batch = zoom(batch, scale, 2 * keys[:, 2:4] - 1)
        if self.light > 0:
            gain = 1 + self.light * (2 * keys[:, 4:7] - 1)
            batch = batch._replace(images=(batch.images * gain[:, :, None, None]).clamp(max=1))
        return batch


def mirror(batch: Batch, chosen: Tensor) -> Batch:
    """The pictures where `chosen` (B,) bool is true, with their boxes, left for right."""
    images, boxes, labels, _ = batch
    x1, y1, x2, y2 = boxes.unbind(dim=2)
    mirrored = torch.stack([images.shape[3] - x2, y1, images.shape[3] - x1, y2], dim=2)
    return batch._replace(
        images=torch.where(chosen.view(-1, 1, 1, 1), images.flip(3), images),
        boxes=torch.where(chosen.view(-1, 1, 1) & (labels >= 0).unsqueeze(2), mirrored, boxes),
    )


def zoom(batch: Batch, scale: Tensor, offset: Tensor) -> Batch:
    """Every picture enlarged or made smaller, grey around it as on a letterbox.

    Args:
        batch: pictures and boxes. Boxes are clipped, and those of which too little is left become padding.
        scale: (B,), the factor of each picture.
        offset: (B, 2), x and y in -1..1, the point that stays. A smaller picture stays whole, a larger one leaves no
            room.
    """
    images, boxes, labels, _ = batch
    height, width = images.shape[2:]
    scale = scale.view(-1, 1, 1)
    shift = offset.unsqueeze(1) * (scale - 1).abs()  # of the middle, in halves of the canvas
    theta = torch.cat([torch.eye(2) / scale, -shift.mT / scale], dim=2).float()
    grid = affine_grid(theta, list(images.shape), align_corners=False)
    grey = GREY / 255
    images = (grid_sample(images - grey, grid, align_corners=False) + grey).clamp(0, 1)  # outside is zero
    half = torch.tensor([width, height] * 2) / 2
    moved = ((boxes - half) * scale + half + shift.repeat(1, 1, 2) * half).float()
    clipped = torch.minimum(moved.clamp(min=0), 2 * half)
    kept = (labels >= 0) & (_area(clipped) > VISIBLE * _area(moved))
    return batch._replace(
        images=images,
        boxes=torch.where(kept[..., None], clipped, 0.0),
        labels=labels.where(kept, PADDING_LABEL),
    )


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
