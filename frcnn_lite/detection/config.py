"""The whole configuration of the detector, as one frozen dataclass."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

AnchorStyle = Literal["centered", "torchvision"]
RoiOp = Literal["pool", "align"]
Norm = Literal["group", "frozen"]


@dataclass(frozen=True)
class FasterRCNNConfig:
    """The plan of a `FasterRCNN`. The defaults suit 10 classes on 128 x 128 images and two CPU cores.

    Sizes are in image pixels; counts are per image and fix the shapes of tensors. Raises ValueError or TypeError that
    names the field.
    """

    num_classes: int = 10
    """Foreground classes; labels run from 0 to num_classes - 1, and num_classes itself means background."""

    backbone: str = "lite"
    """The network that sees the picture first: lite, which is small, or one of torchvision's by its name there, such as
    resnet18, resnet50 or mobilenet_v3_large."""
    fpn: bool = False
    """Put a feature pyramid on top of a torchvision backbone; lite has one of its own, of one step."""
    norm: Norm = "group"
    """How a torchvision backbone normalises: "group" to train from scratch, "frozen" BatchNorm for trained weights."""

    # The lite backbone: one stage per width; each halves the resolution, so the stride is 2 ** len(widths).
    in_channels: int = 3
    widths: tuple[int, ...] = (24, 48, 96)
    blocks: tuple[int, ...] = (0, 1, 2)
    roi_channels: int = 64
    """Channels of the finer map, of half the stride, that regions are pooled from."""
    group_width: int = 8
    """Channels that GroupNorm normalises together."""
    pixel_mean: float | tuple[float, ...] = 0.45
    pixel_std: float | tuple[float, ...] = 0.25
    """Of all channels together, or one number a channel."""

    # Anchors: every size (side of the square of equal area) with every ratio (height / width).
    anchor_sizes: tuple[float, ...] = (18.0, 26.0, 36.0)
    """On a pyramid: as many a level as there are sizes for, the smallest on the finest level."""
    anchor_ratios: tuple[float, ...] = (1.4,)
    anchor_style: AnchorStyle = "centered"
    """"centered": around the middle of each cell; "torchvision": around its corner, rounded to whole pixels,
    and of each ratio first."""

    # Region proposal network.
    rpn_positive_iou: float = 0.6
    rpn_negative_iou: float = 0.3
    rpn_samples: int = 64
    rpn_positive_fraction: float = 0.5
    rpn_delta_weights: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)

    # Proposals.
    pre_nms_proposals: int = 192
    """On each level of a pyramid."""
    proposals: int = 48
    proposal_nms_iou: float = 0.7

    # Box head.
    roi_positive_iou: float = 0.5
    roi_samples: int = 32
    roi_positive_fraction: float = 0.5
    roi_op: RoiOp = "align"
    """How features of a region are read: align (RoIAlign), which places boxes more exactly, or pool (RoI pooling)."""
    roi_output_size: int = 6
    head_width: int = 256
    head_layers: int = 1
    class_specific_boxes: bool = True
    """Four deltas a class, as in Fast R-CNN, instead of four a region, as in R-FCN."""
    roi_delta_weights: tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0)
    smooth_l1_beta: float = 1 / 9

    # Detections.
    score_threshold: float = 0.05
    detection_nms_iou: float = 0.4
    voting_iou: float = 0.5
    """How far a candidate must overlap a detection of its class to have a say in where its box is; with 1 none has."""
    pre_nms_detections: int = 128
    detections: int = 32
    mirrored: bool = False
    """Look for objects in the mirror image of each picture, too, which takes twice the time; left out, a run does so if
    its training mirrors pictures."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"`{name}` must be an int, got {value!r}")
            _require(value >= 1, name, value, "at least 1")
        for name in _FRACTIONS:
            value = getattr(self, name)
            _require(0 <= value <= 1, name, value, "between 0 and 1")
        for name in ("anchor_sizes", "anchor_ratios", "rpn_delta_weights", "roi_delta_weights", "widths"):
            value = getattr(self, name)
            _require(len(value) > 0 and all(0 < v < math.inf for v in value), name, value, "positive numbers")
        for name, choices in {"anchor_style": AnchorStyle, "roi_op": RoiOp, "norm": Norm}.items():
            value = getattr(self, name)
            _require(value in get_args(choices), name, value, f"one of {get_args(choices)}")
        _require(len(self.rpn_delta_weights) == 4, "rpn_delta_weights", self.rpn_delta_weights, "four numbers")
        _require(len(self.roi_delta_weights) == 4, "roi_delta_weights", self.roi_delta_weights, "four numbers")
        _require(len(self.blocks) == len(self.widths), "blocks", self.blocks, "as long as widths")
        _require(all(n >= 0 for n in self.blocks), "blocks", self.blocks, "numbers of residual blocks, 0 or more")
        _require(len(self.widths) >= 2, "widths", self.widths, "at least two stages")
        groups = f"multiples of group_width={self.group_width}"
        _require(all(width % self.group_width == 0 for width in self.widths), "widths", self.widths, groups)
        _require(self.roi_channels % self.group_width == 0, "roi_channels", self.roi_channels, groups)
        for name in ("pixel_mean", "pixel_std"):
            value = getattr(self, name)
            many = isinstance(value, tuple)
            _require(not many or len(value) == self.in_channels, name, value, "one number, or one a channel")
            _require(name != "pixel_std" or min(value if many else (value,)) > 0, name, value, "positive")
        _require(not self.fpn or self.backbone != "lite", "fpn", self.fpn, 'false for the backbone "lite"')
        _require(self.smooth_l1_beta > 0, "smooth_l1_beta", self.smooth_l1_beta, "positive")
        low, high = self.rpn_negative_iou, self.rpn_positive_iou
        _require(low <= high, "rpn_negative_iou", low, f"at most rpn_positive_iou={high}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "FasterRCNNConfig":
        """The configuration that `dataclasses.asdict` wrote, also after a trip through JSON (lists become tuples).

        Raises ValueError for a key that is not a field.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown fields {unknown}; FasterRCNNConfig has {sorted(known)}")
        frozen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**frozen)


_COUNTS = (
    *("num_classes", "in_channels", "roi_channels", "group_width", "rpn_samples", "pre_nms_proposals", "proposals"),
    *("roi_samples", "roi_output_size", "head_width", "head_layers", "pre_nms_detections", "detections"),
)
_FRACTIONS = (
    *("rpn_positive_iou", "rpn_negative_iou", "rpn_positive_fraction", "proposal_nms_iou", "roi_positive_iou"),
    *("roi_positive_fraction", "score_threshold", "detection_nms_iou", "voting_iou"),
)


def _require(condition: bool, name: str, value: object, wanted: str) -> None:
    if not condition:
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}")
