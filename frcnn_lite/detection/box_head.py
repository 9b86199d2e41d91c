"""The box head: class scores and refined deltas for regions of interest (Girshick, "Fast R-CNN", 2015)."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor, nn

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.losses import LossParts, box_sum, classification_sum
from frcnn_lite.detection.proposal_targets import ProposalTargets
from frcnn_lite.ops import roi_align, roi_pool

SAMPLING_RATIO = 2
"""Points a bin and side that RoIAlign reads, as in torchvision's Faster R-CNN: one number for all regions. "As many as
there are cells" would make shapes depend on the data."""

OUTSIDE = -1000.0
"""In cells: where a region has no part in a map, and RoIAlign returns zero."""


class BoxHead(nn.Module):
    """Pools each region to a small grid, then fully connected layers.

    The deltas are class-agnostic, four per region as in R-FCN (Dai et al., 2016), or as the config says four per class.
    """

    delta_weights: Tensor

    def __init__(self, config: FasterRCNNConfig, channels: int, strides: tuple[int, ...]) -> None:
        super().__init__()
        self.config, self.strides = config, strides
        widths = [channels * config.roi_output_size**2] + [config.head_width] * config.head_layers
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.classify = nn.Linear(config.head_width, config.num_classes + 1)
        self.box_classes = config.num_classes if config.class_specific_boxes else 1
        self.regress = nn.Linear(config.head_width, 4 * self.box_classes)
        for layer in self.hidden:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")  # type: ignore[arg-type]
        nn.init.normal_(self.classify.weight, std=0.01)
        nn.init.normal_(self.regress.weight, std=0.001)
        for layer in (*self.hidden, self.classify, self.regress):
            nn.init.zeros_(layer.bias)
        self.register_buffer("delta_weights", torch.tensor(config.roi_delta_weights), persistent=False)
        if len(strides) > 1:
            self.pyramid = _pyramid(config, strides)

    def forward(self, maps: tuple[Tensor, ...], rois: Tensor) -> tuple[Tensor, Tensor]:
        """Classify regions and refine their boxes.

        Args:
            maps: (B, C, h, w), one for each stride.
            rois: (B, S, 4).

        Returns:
            Logits (B, S, num_classes + 1) and deltas (B, S, D, 4), D = num_classes for class-specific boxes, else 1.
        """
        batch, count = rois.shape[:2]
        # The image index counts within this batch: on a replica, image 0 is the first of *its* chunk.
        image = torch.arange(batch, device=rois.device, dtype=rois.dtype).view(-1, 1, 1).expand(-1, count, 1)
        indexed = torch.cat([image, rois], dim=2).flatten(0, 1)
        hidden = self.pool(maps, indexed).flatten(1)
        for layer in self.hidden:
            hidden = torch.relu(layer(hidden))
        # Whatever autocast chose for the layers, boxes and losses are computed in the precision of the rois.
        logits, deltas = self.classify(hidden).to(rois.dtype), self.regress(hidden).to(rois.dtype)
        return logits.view(batch, count, -1), deltas.view(batch, count, self.box_classes, 4)

    def pool(self, maps: tuple[Tensor, ...], rois: Tensor) -> Tensor:
        """The features of regions, by `config.roi_op`.

        Args:
            maps: (B, C, h, w), one for each stride.
            rois: (R, 5), index of the image, then `xyxy`, as many for each image, in the order of the images.

        Returns:
            (R, C, size, size).
        """
        size, strides = self.config.roi_output_size, self.strides
        align = self.config.roi_op == "align"
        if len(maps) == 1:
            if align:
                return roi_align(maps[0], rois, size, 1 / strides[0], SAMPLING_RATIO)
            return roi_pool(maps[0], rois, size, 1 / strides[0])
        boxes = list(rois[:, 1:].view(len(maps[0]), -1, 4).unbind())
        if align and rois.device.type == "cpu":
            return self.pyramid(dict(enumerate(maps)), boxes, [])
        if align:
            return align_on_levels(maps, rois, self.pyramid.map_levels(boxes), size, strides)
        # Every region from every level, then the one that suits it: wasteful, and of static shape.
        pooled = [roi_pool(one, rois, size, 1 / stride) for one, stride in zip(maps, strides, strict=True)]
        level = self.pyramid.map_levels(boxes).view(1, -1, 1, 1, 1)
        return torch.stack(pooled).gather(0, level.expand(-1, *pooled[0].shape)).squeeze(0)

    def losses(self, logits: Tensor, deltas: Tensor, targets: ProposalTargets) -> LossParts:
        """Class and box losses of the sampled regions; both are counted by the number of regions."""
        count = targets.weights.sum(dim=1)
        if self.box_classes > 1:
            # Background has no deltas; its box weight is 0, so any class does.
            answering = targets.labels.clamp(max=self.box_classes - 1)[..., None, None].expand(-1, -1, 1, 4)
            deltas = deltas.gather(2, answering)
        deltas = deltas.squeeze(2)
        return LossParts(
            sums={
                "head_class": classification_sum(logits, targets.labels, targets.weights),
                "head_box": box_sum(deltas, targets.deltas, targets.box_weights, self.config.smooth_l1_beta),
            },
            counts={"head_class": count, "head_box": count},
        )


def align_on_levels(
    maps: tuple[Tensor, ...], rois: Tensor, level: Tensor, size: int, strides: tuple[int, ...]
) -> Tensor:
    """What torchvision's `MultiScaleRoIAlign` computes, to the bit, without asking the device which regions are whose.

    Every level gets all regions, of which those of other levels are moved far out of its map, where the operator has
    nothing to read and returns zeros. To pick them out would make a shape depend on data, and wait once a level.

    Args:
        maps: (B, C, h, w), one for each stride.
        rois: (R, 5).
        level: (R,) int64, the map of each region.
        size: bins of a region and side.
        strides: image pixels of a cell of each map.

    Returns:
        (R, C, size, size).
    """
    from torchvision.ops import roi_align as align

    pooled: Tensor | None = None
    for k, (one, stride) in enumerate(zip(maps, strides, strict=True)):
        corners = rois[:, 1:].where((level == k).unsqueeze(1), OUTSIDE * stride)
        part = align(one, torch.cat([rois[:, :1], corners], dim=1), size, 1 / stride, SAMPLING_RATIO)
        pooled = part if pooled is None else pooled + part
    assert pooled is not None
    return pooled


def _pyramid(config: FasterRCNNConfig, strides: tuple[int, ...]) -> Any:
    """Torchvision's RoIAlign over a feature pyramid, which takes each region from the level that suits its size."""
    from torchvision.ops import MultiScaleRoIAlign
    from torchvision.ops.poolers import LevelMapper

    levels = [*range(len(strides))]
    pyramid = MultiScaleRoIAlign(levels, config.roi_output_size, SAMPLING_RATIO)  # type: ignore[arg-type]
    # The strides are known; torchvision guesses them from the sizes of maps and images, which goes wrong on small ones.
    pyramid.scales = [1 / stride for stride in strides]
    pyramid.map_levels = LevelMapper(*(round(math.log2(stride)) for stride in (strides[0], strides[-1])))
    return pyramid
