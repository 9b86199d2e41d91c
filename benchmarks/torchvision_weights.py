"""Weights of torchvision's `FasterRCNN`, as weights of ours, so both can be compared on the same pictures.

The same detector in two layouts. Torchvision counts background as class 0, ours as the last one; torchvision predicts
objectness and deltas by two convolutions, ours by one; and it has deltas for background, which nothing reads.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.detection import FasterRCNNConfig

RENAMED = {
    "backbone.": "backbone.maps.",
    "rpn.head.conv.0.0.": "rpn.conv.",
    "roi_heads.box_head.fc6.": "box_head.hidden.0.",
    "roi_heads.box_head.fc7.": "box_head.hidden.1.",
}


def torchvision_config(num_classes: int = 90, **changes: Any) -> FasterRCNNConfig:
    """The configuration of `torchvision.models.detection.fasterrcnn_resnet50_fpn`, in inference.

    num_classes: foreground classes, one less than torchvision's number; changes: fields that are to differ.
    """
    fields: dict[str, Any] = {
        "num_classes": num_classes,
        "backbone": "resnet50",
        "fpn": True,
        "norm": "frozen",
        "pixel_mean": (0.485, 0.456, 0.406),
        "pixel_std": (0.229, 0.224, 0.225),
        "anchor_sizes": (32.0, 64.0, 128.0, 256.0, 512.0),
        "anchor_ratios": (0.5, 1.0, 2.0),
        "anchor_style": "torchvision",
        "rpn_positive_iou": 0.7,
        "rpn_samples": 256,
        "pre_nms_proposals": 1000,
        "proposals": 1000,
        "roi_op": "align",
        "roi_output_size": 7,
        "roi_samples": 512,
        "roi_positive_fraction": 0.25,
        "head_width": 1024,
        "head_layers": 2,
        "class_specific_boxes": True,
        "detection_nms_iou": 0.5,
        "voting_iou": 1.0,
        "pre_nms_detections": 4000,
        "detections": 100,
    }
    return FasterRCNNConfig(**{**fields, **changes})


def from_torchvision(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The `state_dict` of torchvision's `FasterRCNN` as that of ours; `torchvision_config` describes one that takes it.

    Raises ValueError when an array that makes a Faster R-CNN is missing.
    """
    missing = sorted(name for name in _READ if name not in state)
    if missing:
        raise ValueError(f"`state` must be of torchvision's FasterRCNN, got one without {missing}")
    ours = {}
    for name, tensor in state.items():
        prefix = next((old for old in RENAMED if name.startswith(old)), None)
        if prefix:
            ours[RENAMED[prefix] + name.removeprefix(prefix)] = tensor
    for kind in ("weight", "bias"):
        logits, deltas = (state[f"rpn.head.{part}.{kind}"] for part in ("cls_logits", "bbox_pred"))
        per_anchor = deltas.unflatten(0, (len(logits), 4))
        ours[f"rpn.predict.{kind}"] = torch.cat([logits.unsqueeze(1), per_anchor], dim=1).flatten(0, 1)
        classes = state[f"roi_heads.box_predictor.cls_score.{kind}"]
        ours[f"box_head.classify.{kind}"] = classes.roll(-1, dims=0)  # background last
        ours[f"box_head.regress.{kind}"] = state[f"roi_heads.box_predictor.bbox_pred.{kind}"][4:]
    return ours


_READ = (
    *(f"rpn.head.{part}.{kind}" for part in ("cls_logits", "bbox_pred", "conv.0.0") for kind in ("weight", "bias")),
    *(f"roi_heads.box_head.{part}.{kind}" for part in ("fc6", "fc7") for kind in ("weight", "bias")),
    *(f"roi_heads.box_predictor.{part}.{kind}" for part in ("cls_score", "bbox_pred") for kind in ("weight", "bias")),
)
