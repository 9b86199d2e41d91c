"""The region proposal network: an objectness and four deltas for every anchor, and what it is trained on."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.losses import LossParts, box_sum, objectness_sum
from frcnn_lite.detection.targets import assign_targets
from frcnn_lite.ops import random_keys
from frcnn_lite.ops.sampling import gather_rows

RPN_STREAM = 0


class RPNOutput(NamedTuple):
    """`logits` (B, N) of objectness, `deltas` (B, N, 4) and the `anchors` (N, 4) they belong to; `levels`: how many of
    the N are on each level of a pyramid, finest first."""

    logits: Tensor
    deltas: Tensor
    anchors: Tensor
    levels: tuple[int, ...]


class RegionProposalNetwork(nn.Module):
    """Objectness and box deltas from features (Ren et al., "Faster R-CNN", 2015), by the same layers on every level.

    Args:
        channels: of each map.
        strides: image pixels per cell of each map.

    Raises:
        ValueError: the anchor sizes cannot be dealt out evenly to the levels.
    """

    cell_anchors: Tensor
    delta_weights: Tensor

    def __init__(self, config: FasterRCNNConfig, channels: int, strides: tuple[int, ...]) -> None:
        super().__init__()
        self.config, self.strides = config, strides
        cells = _cell_anchors(config, len(strides))
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        # One 1 x 1 convolution for both outputs: five numbers an anchor.
        self.predict = nn.Conv2d(channels, 5 * cells.shape[1], 1)
        nn.init.kaiming_normal_(self.conv.weight, nonlinearity="relu")
        nn.init.normal_(self.predict.weight, std=0.01)
        nn.init.zeros_(self.predict.bias)  # type: ignore[arg-type]
        self.register_buffer("cell_anchors", cells, persistent=False)
        self.register_buffer("delta_weights", torch.tensor(config.rpn_delta_weights), persistent=False)

    def forward(self, maps: tuple[Tensor, ...]) -> RPNOutput:
        """Maps (B, C, h, w), one a level, to the predictions for the N = sum of h * w * A anchors."""
        predictions, anchors = [], []
        offset = 0.5 if self.config.anchor_style == "centered" else 0.0
        for features, cell, stride in zip(maps, self.cell_anchors.unbind(), self.strides, strict=True):
            output = self.predict(torch.relu(self.conv(features)))
            predictions.append(output.permute(0, 2, 3, 1).reshape(features.shape[0], -1, 5))
            height, width = features.shape[2:]
            anchors.append(grid_anchors(cell, height, width, stride, offset))
        # Under autocast the layers compute in half precision, in which a pixel of a large picture is no longer one.
        output = torch.cat(predictions, dim=1).to(self.cell_anchors.dtype)
        levels = tuple(len(of_level) for of_level in anchors)
        logits, deltas = output.split((1, 4), dim=2)
        return RPNOutput(logits.squeeze(2), deltas, torch.cat(anchors), levels)

    def losses(self, output: RPNOutput, boxes: Tensor, labels: Tensor, seeds: Tensor) -> LossParts:
        """Objectness and box losses on a sample of anchors; ground truth boxes (B, M, 4), labels (B, M), seeds (B,)."""
        config = self.config
        indices, _, weights, box_weights, _, wanted = assign_targets(
            output.anchors,
            boxes,
            labels,
            random_keys(seeds, len(output.anchors), RPN_STREAM),
            self.delta_weights,
            thresholds=(config.rpn_positive_iou, config.rpn_negative_iou),
            size=config.rpn_samples,
            positive_fraction=config.rpn_positive_fraction,
            background=-1,
            allow_low_quality=True,
        )
        logits, deltas = output.logits.gather(1, indices), gather_rows(output.deltas, indices)
        count = weights.sum(dim=1)
        return LossParts(
            sums={
                "rpn_objectness": objectness_sum(logits, box_weights, weights),  # 1 where a sampled anchor has a box
                "rpn_box": box_sum(deltas, wanted, box_weights, config.smooth_l1_beta),
            },
            counts={"rpn_objectness": count, "rpn_box": count},
        )


def _cell_anchors(config: FasterRCNNConfig, levels: int) -> Tensor:
    """(levels, A, 4): the anchors of a cell on every level."""
    count, rest = divmod(len(config.anchor_sizes), levels)
    if rest or not count:
        raise ValueError(f"`anchor_sizes` must be a multiple of {levels} levels of features, got {config.anchor_sizes}")
    groups = (config.anchor_sizes[k * count : (k + 1) * count] for k in range(levels))
    cells = torch.stack([cell_anchors(sizes, config.anchor_ratios) for sizes in groups])
    if config.anchor_style == "centered":
        return cells
    by_ratio = cells.unflatten(1, (count, -1)).transpose(1, 2)  # torchvision lets the sizes vary fastest
    return by_ratio.flatten(1, 2).round()
