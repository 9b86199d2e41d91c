"""The plan of torchvision's `FasterRCNN` as one of ours, so both can be compared with the same weights."""

from typing import Any

from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.detection.torchvision_weights import from_torchvision

__all__ = ["from_torchvision", "torchvision_config"]


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
