"""What the notebook draws of the tensors on their way: maps, anchors, objectness, proposals, regions."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from course.kit.figures.panels import Panel, panels
from course.kit.figures.svg import Figure
from course.lessons.nb12.call_trace import CallTrace, trace_calls
from course.lessons.nb12.region_scores import region_scores
from frcnn_lite import ops
from frcnn_lite.data.batch import Scene
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.detection.postprocess import make_detections
from frcnn_lite.detection.proposals import make_proposals


def lively_maps(scene: Scene, coarse: Tensor, fine: Tensor) -> Figure:
    """A picture with the channels of its maps coarse (C, h, w) and fine (C, h, w) that vary most: four and one."""
    truth = {"true box": scene.boxes}
    shown = [Panel(scene.image, "the first picture", truth)]
    for name, maps, count in (("coarse", coarse, 4), ("fine", fine, 1)):
        liveliest = maps.flatten(1).std(dim=1).argsort(descending=True)[:count].tolist()
        shown += [Panel(maps[k], f"{name} map, channel {k}", truth) for k in liveliest]
    return panels(shown, "A picture, and what the backbone makes of it")


def anchor_views(scene: Scene, anchors: Tensor) -> Figure:
    """Of anchors (N, 4), three a cell: the middles of the cells, the three of a cell in the middle, one size of all."""
    middles = (anchors[::3, :2] + anchors[::3, 2:]) / 2
    dots = torch.cat([middles - 0.5, middles + 0.5], dim=1)
    shown = {
        f"the middles of the {len(middles)} cells": dots,
        "the three anchors of one cell": anchors[408:411],
        f"all {len(middles)} of the smallest size": anchors[::3],
    }
    return panels([Panel(scene.image, words, {"anchor": boxes}) for words, boxes in shown.items()], "768 anchors")


def objectness_panels(scene: Scene, objectness: Tensor, sizes: Sequence[float], name: str) -> list[Panel]:
    """A map for each size of anchor, of objectness (768,) in the order of the anchors."""
    by_size = objectness.view(16, 16, len(sizes)).unbind(dim=2)
    truth = {"true box": scene.boxes}
    return [
        Panel(shown, f"{name}, size {side:.0f}", truth, low=0, high=1)
        for shown, side in zip(by_size, sizes, strict=True)
    ]


def proposal_views(scene: Scene, anchors: Tensor, moved: Tensor, proposals: Tensor) -> Figure:
    """Boxes (n, 4) in three states of one picture."""
    shown = [
        Panel(scene.image, "20 anchors of the highest logits", {"anchor": anchors}),
        Panel(scene.image, "the same, moved by their deltas", {"proposal": moved}),
        Panel(scene.image, "after NMS, the best 20 again", {"proposal": proposals}),
    ]
    return panels(shown, "From anchors to proposals")


def three_regions(model: FasterRCNN, scene: Scene, fine: Tensor, boxes: Tensor, scores: Tensor) -> Figure:
    """Two regions on digits and the one furthest from all: boxes (n, 4), scores (n, C + 1), a map (1, c, h, w)."""
    with torch.no_grad():
        pooled = model.box_head.pool((fine,), torch.cat([boxes.new_zeros(len(boxes), 1), boxes], dim=1))
    iou = ops.box_iou(scene.boxes, boxes.cpu())
    rows = [int(iou[0].argmax()), int(iou[1].argmax()), int(iou.amax(dim=0).argmin())]
    channel = int(pooled.flatten(2).std(dim=2).mean(dim=0).argmax())  # the liveliest
    names = [*map(str, range(scores.shape[1] - 1)), "background"]
    title = f"Three of {len(boxes)} regions, what is pooled from them, and their {len(names)} scores"
    return region_scores(scene.image, boxes[rows], pooled[rows, channel], scores[rows], names, title)


def trace_page(model: FasterRCNN) -> AbstractContextManager[CallTrace]:
    """Record a detection from picture to boxes: the functions of the page, and the tensors that they make."""
    stages: dict[str, Callable[..., Any]] = {
        "backbone": type(model.backbone).forward,
        "rpn": type(model.rpn).forward,
        "make_proposals": make_proposals,
        "box_head": type(model.box_head).forward,
        "make_detections": make_detections,
    }
    return trace_calls(type(model).forward, stages, {"box_head": ("logits", "deltas")})
