"""One picture with its boxes, and many of them as one batch of equal shapes."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

PADDING_LABEL = -1  # a row of `Batch.boxes` with this label is not a box


class Ignored(NamedTuple):
    """Regions that count neither for nor against a detection.

    Attributes:
        boxes: (n, 4) float32 xyxy pixels.
        labels: (n,) int64.
        crowd: (n,) bool, whether a region holds many objects.
    """

    boxes: Tensor
    labels: Tensor
    crowd: Tensor


class Scene(NamedTuple):
    """One picture with its boxes.

    Attributes:
        image: (3, H, W) uint8 RGB.
        boxes: (n, 4) float32 xyxy pixels, of what training sees.
        labels: (n,) int64.
        image_id: the picture's number in its data set.
        ignored: regions that are not among the boxes and that evaluation leaves out, such as VOC's `difficult` objects
            and COCO's crowds.
        scale: how many pixels of the scene a pixel of the picture's file is long.
    """

    image: Tensor
    boxes: Tensor
    labels: Tensor
    image_id: int
    ignored: Ignored | None = None
    scale: float = 1.0


class Batch(NamedTuple):
    """B pictures of one size; M is the largest number of boxes, and rows beyond a picture's own are padding.

    Attributes:
        images: (B, 3, H, W) float32 in 0..1.
        boxes: (B, M, 4) float32 xyxy pixels, padded with zeros.
        labels: (B, M) int64, padded with -1.
        image_ids: (B,) int64.
    """

    images: Tensor
    boxes: Tensor
    labels: Tensor
    image_ids: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch with every tensor on `device`."""
        return Batch(*(send(tensor, torch.device(device)) for tensor in self))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on `device`; on a GPU without waiting until it is there, for which its memory is pinned first."""
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def collate(scenes: Sequence[Scene], max_boxes: int | None = None) -> Batch:
    """Stack scenes of one size into a `Batch`, boxes padded to equal length: a DataLoader's `collate_fn`.

    Args:
        max_boxes: the length M to pad to; None pads to the longest of these scenes, but to 1 at least.

    Raises:
        ValueError: the sizes differ, or a scene has more than `max_boxes` boxes, of which none is dropped in silence.
    """
    if not scenes:
        raise ValueError("`scenes` must hold at least one Scene, got none")
    sizes = {tuple(scene.image.shape) for scene in scenes}
    if len(sizes) > 1:
        raise ValueError(f"`scenes` must have one image size, got {sorted(sizes)}")
    most = max(len(scene.labels) for scene in scenes)
    rows = max(most, 1) if max_boxes is None else max_boxes
    if most > rows:
        raise ValueError(f"`max_boxes` must be at least {most}, the boxes of a scene, or None, got {max_boxes}")
    return Batch(
        images=torch.stack([scene.image for scene in scenes]).to(torch.float32) / 255,
        boxes=torch.stack([pad(scene.boxes, (0, 0, 0, rows - len(scene.boxes))) for scene in scenes]),
        labels=torch.stack([pad(scene.labels, (0, rows - len(scene.labels)), value=PADDING_LABEL) for scene in scenes]),
        image_ids=torch.tensor([scene.image_id for scene in scenes], dtype=torch.int64),
    )
