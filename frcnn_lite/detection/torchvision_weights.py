"""Weights of torchvision's models by the names that they have in ours, and the plan that they were trained with.

The same detector in two layouts. Torchvision counts background as class 0, ours as the last one; torchvision predicts
objectness and deltas by two convolutions, ours by one; and it has deltas for background, which nothing reads.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig

RENAMED = {
    "backbone.": "backbone.maps.",
    "rpn.head.conv.0.0.": "rpn.conv.",
    "roi_heads.box_head.fc6.": "box_head.hidden.0.",
    "roi_heads.box_head.fc7.": "box_head.hidden.1.",
}
BODY = "backbone.body."  # in a detector's file, before the names that the backbone alone has
# By the blocks of the third stage, and whether they have three convolutions.
RESNETS = {(2, False): "resnet18", (6, False): "resnet34", (6, True): "resnet50", (23, True): "resnet101"}
# How torchvision trained what it hands out (docs.pytorch.org/vision, "Models").
TRAINED: dict[str, Any] = {
    "norm": "frozen",
    "pixel_mean": (0.485, 0.456, 0.406),
    "pixel_std": (0.229, 0.224, 0.225),
}
ANCHORS: dict[str, Any] = {
    "anchor_sizes": (32.0, 64.0, 128.0, 256.0, 512.0),
    "anchor_ratios": (0.5, 1.0, 2.0),
    "anchor_style": "torchvision",
}


def plan_of(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields of `FasterRCNNConfig` that suit a state dict of torchvision's: the backbone's, if it can be told, and
    of a Faster R-CNN on a ResNet with a pyramid also those of its anchors and its head."""
    plan = {**TRAINED, **_backbone(body_of(state))}
    if is_detector(state):
        plan["fpn"] = True
    if all(name in state for name in _READ) and len(state["rpn.head.cls_logits.bias"]) == 3:
        width, pooled = state["roi_heads.box_head.fc6.weight"].shape
        side = round((pooled / state["rpn.head.conv.0.0.weight"].shape[1]) ** 0.5)
        plan |= {**ANCHORS, "roi_output_size": side, "head_width": width, "head_layers": 2}
    return plan


def is_detector(state: Mapping[str, Tensor]) -> bool:
    """Whether a state dict is a detector's, and not of a backbone alone."""
    return any(name.startswith(BODY) for name in state)


def body_of(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The backbone of a detector, or the whole of a classifier, whose layers a detector takes as they are called."""
    if is_detector(state):
        return {name.removeprefix(BODY): tensor for name, tensor in state.items() if name.startswith(BODY)}
    return {name.removeprefix("features."): tensor for name, tensor in state.items()}


def by_our_names(state: Mapping[str, Tensor], config: FasterRCNNConfig) -> tuple[dict[str, Tensor], str]:
    """What a detector of `config` can take from a state dict of torchvision's, and how the names of its body begin."""
    mobile = config.backbone.startswith("mobilenet")
    prefix = "backbone.maps." + ("body." if config.fpn else "0." if mobile else "")
    found = {prefix + name: tensor for name, tensor in body_of(state).items()}
    whole = config.fpn and all(name in state for name in _READ)
    return (from_torchvision(state) if whole else {}) | found, prefix


def _backbone(body: Mapping[str, Tensor]) -> dict[str, str]:
    if "0.0.weight" in body:
        return {"backbone": "mobilenet_v3_large"}
    blocks = len({name.split(".")[1] for name in body if name.startswith("layer3.")})
    name = RESNETS.get((blocks, "layer3.0.conv3.weight" in body))
    return {"backbone": name} if name else {}


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
