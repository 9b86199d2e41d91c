"""Who learns what: a picture with its positive anchors, and the label of every anchor on a map for each size."""

import torch
from torch import Tensor

from course.kit.figures.panels import Panel, panels
from course.kit.figures.svg import Figure
from frcnn_lite.data.batch import Scene
from frcnn_lite.ops.matching import BACKGROUND, match

KINDS = {1: ("positive", "#882255"), 0: ("background", "#c8c57f"), -1: ("left out", "#f2f4f6")}
SIZES = (18, 26, 36)


def rpn_labels(iou: Tensor) -> Tensor:
    """The labels (N,) that the library's RPN has for anchors of iou (M, N), before it draws its sample."""
    real = torch.ones(1, len(iou), dtype=torch.bool)  # noqa: FL002 all on the CPU
    found = match(iou[None], real, 0.6, 0.3, allow_low_quality=True)[0]
    return torch.where(found >= 0, 1, torch.where(found == BACKGROUND, 0, -1))


def label_maps(scene: Scene, anchors: Tensor, labels: Tensor) -> Figure:
    """Of anchors (768, 4) and their labels (768,): 1, 0 or -1. The title counts them."""
    truth = {"true box": scene.boxes}
    shown = [Panel(scene.image, "positive anchors", {**truth, "object": anchors[labels == 1]})]
    maps = labels.view(16, 16, len(SIZES)).unbind(dim=2)
    shown += [Panel(of_size, f"size {size}", truth, kinds=KINDS) for size, of_size in zip(SIZES, maps, strict=True)]
    title = ", ".join(f"{int((labels == value).sum())} {words}" for value, (words, _) in KINDS.items())
    return panels(shown, title, columns=4, side=176)


def iou_maps(scene: Scene, iou: Tensor) -> Figure:
    """The best of iou (M, 768) for each anchor, beside the picture."""
    truth = {"true box": scene.boxes}
    maps = iou.amax(dim=0).view(16, 16, len(SIZES)).unbind(dim=2)
    shown = [Panel(scene.image, "the picture", truth)]
    shown += [
        Panel(of_size, f"anchors of size {size}", truth, low=0, high=0.8)
        for size, of_size in zip(SIZES, maps, strict=True)
    ]
    return panels(shown, "The best IoU of each anchor with a digit", columns=4, side=176)
