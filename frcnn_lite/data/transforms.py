"""torchvision's transforms on scenes: pictures and boxes change together."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.data.batch import Ignored, Scene
from frcnn_lite.data.dataset import DetectionDataset

Transform = Callable[[dict[str, Any]], dict[str, Any]]


class TransformedScenes:
    """The scenes of `dataset` after `transform`: any of `torchvision.transforms.v2` that keeps pictures in uint8.

    Boxes are clipped to the new picture, and those that are left without area are dropped with their labels. What a
    random transform draws is not stored in a checkpoint: a run that must resume bit for bit has to do without.
    """

    def __init__(self, dataset: DetectionDataset, transform: Transform) -> None:
        self.dataset, self.transform = dataset, transform

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.dataset.class_names

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int, /) -> Scene:
        from torchvision import tv_tensors

        scene = self.dataset[index]
        size = tuple(scene.image.shape[1:])
        ignored = scene.ignored or Ignored(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0).bool())
        boxes = torch.cat([scene.boxes, ignored.boxes])
        # Only pictures and boxes are transformed: all other tensors would be taken for pictures too
        given = {
            "image": tv_tensors.Image(scene.image),
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=size),  # type: ignore[call-overload]
        }
        out = self.transform(given)
        image, moved = out["image"].as_subclass(Tensor), out["boxes"].as_subclass(Tensor).to(torch.float32)
        if len(moved) != len(boxes) or image.dtype != torch.uint8:
            raise ValueError(
                f"transform must keep {len(boxes)} boxes and uint8 pixels, got {len(moved)} and {image.dtype}"
            )
        return _assemble(scene, ignored, image, moved)


def _assemble(scene: Scene, ignored: Ignored, image: Tensor, boxes: Tensor) -> Scene:
    height, width = image.shape[1:]
    boxes = torch.minimum(boxes.clamp(min=0), torch.tensor([width, height, width, height], dtype=torch.float32))
    kept = (boxes[:, 2:] > boxes[:, :2]).all(dim=1)
    n = len(scene.labels)
    regions = Ignored(boxes[n:][kept[n:]], ignored.labels[kept[n:]], ignored.crowd[kept[n:]])
    return scene._replace(
        image=image,
        boxes=boxes[:n][kept[:n]],
        labels=scene.labels[kept[:n]],
        ignored=regions if len(regions.labels) else None,
    )
