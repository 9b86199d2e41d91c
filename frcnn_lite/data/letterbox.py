"""Pictures of any size on one canvas: shrunk or enlarged until they fit, grey where they leave room."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from frcnn_lite.data.batch import Scene
from frcnn_lite.data.dataset import DetectionDataset

GREY = 115  # about the mean of photographs, so that it is near zero for the detector


@dataclass(frozen=True)
class Letterbox:
    """A canvas of `height` x `width` pixels. A picture is at its top left, in its own proportions.

    Shapes and proportions are those of `fit`; boxes are xyxy pixels, (n, 4) float32.
    """

    height: int
    width: int

    def fit(self, height: int, width: int) -> tuple[int, int]:
        """The (height, width) that a picture of this size has on the canvas, at least 1 x 1."""
        scale = min(self.height / height, self.width / width)
        return max(1, round(height * scale)), max(1, round(width * scale))

    def place(self, image: Tensor) -> Tensor:
        """A picture (3, h, w) uint8 on the canvas, (3, height, width) uint8."""
        size = self.fit(*image.shape[1:])
        canvas = torch.full((3, self.height, self.width), GREY, dtype=torch.uint8)
        if size != tuple(image.shape[1:]):
            image = interpolate(image[None], size, mode="bilinear", antialias=True, align_corners=False)[0]
        canvas[:, : size[0], : size[1]] = image
        return canvas

    def to_canvas(self, boxes: Tensor, height: int, width: int) -> Tensor:
        """Boxes of a picture of this size, where they are on the canvas."""
        # Product first, quotient second: an edge of the picture stays an edge, to the last bit
        return boxes * _edges(*self.fit(height, width)) / _edges(height, width)

    def to_picture(self, boxes: Tensor, height: int, width: int) -> Tensor:
        """Boxes of the canvas, where they are in a picture of this size, and not beyond its edges."""
        edges = _edges(height, width)
        return torch.minimum((boxes * edges / _edges(*self.fit(height, width))).clamp(min=0), edges)


def _edges(height: int, width: int) -> Tensor:
    return torch.tensor([width, height, width, height], dtype=torch.float32)


@dataclass
class Room:
    """Memory that may still be filled with finished pictures, by all data sets of a process that share it."""

    free_bytes: int


class LetterboxedScenes:
    """The scenes of `dataset`, all on one canvas, so that any of them make a batch.

    Args:
        room: memory for finished pictures, which are then decoded and resized only once; None where `dataset` gives a
            different scene every time.
    """

    def __init__(self, dataset: DetectionDataset, letterbox: Letterbox, room: Room | None = None) -> None:
        self.dataset, self.letterbox = dataset, letterbox
        self._room, self._kept = room or Room(0), dict[int, Scene]()

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.dataset.class_names

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int, /) -> Scene:
        if index in self._kept:
            return self._kept[index]
        scene = self._place(self.dataset[index])
        if scene.image.nbytes <= self._room.free_bytes:
            self._room.free_bytes -= scene.image.nbytes
            self._kept[index] = scene
        return scene

    def _place(self, scene: Scene) -> Scene:
        height, width = scene.image.shape[1:]
        boxes = self.letterbox.to_canvas(scene.boxes, height, width)
        ignored = scene.ignored
        if ignored is not None:
            ignored = ignored._replace(boxes=self.letterbox.to_canvas(ignored.boxes, height, width))
        scale = scene.scale * math.sqrt(math.prod(self.letterbox.fit(height, width)) / (height * width))
        image = self.letterbox.place(scene.image)
        return scene._replace(image=image, boxes=boxes, ignored=ignored, scale=scale)
