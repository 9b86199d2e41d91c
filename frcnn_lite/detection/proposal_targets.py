"""The training data of the box head: a sample of proposals, each with a class and a box to reach."""

from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.proposals import Proposals
from frcnn_lite.detection.targets import assign_targets
from frcnn_lite.ops import random_keys

ROI_STREAM = 1


class ProposalTargets(NamedTuple):
    """S sampled regions of each image, and what the box head is trained to give for each.

    Attributes:
        rois: (B, S, 4) xyxy pixels.
        labels: (B, S) int64; num_classes means background.
        deltas: (B, S, 4) to reach.
        weights: (B, S) of the class loss, 0 or 1.
        box_weights: (B, S) of the box loss, 0 for background; its `deltas` carry no meaning.
    """

    rois: Tensor
    labels: Tensor
    deltas: Tensor
    weights: Tensor
    box_weights: Tensor


@torch.no_grad()
def make_proposal_targets(
    proposals: Proposals, boxes: Tensor, labels: Tensor, seeds: Tensor, delta_weights: Tensor, config: FasterRCNNConfig
) -> ProposalTargets:
    """Sample proposals and assign them ground truth.

    The ground-truth boxes join the proposals: early in training, when the RPN proposes nothing useful, they are the
    only positives the head sees.

    Args:
        proposals: those of the RPN.
        boxes: (B, M, 4), the ground truth.
        labels: (B, M) int64, -1 for padding.
        seeds: (B,) int64, one for each image.
        delta_weights: (4,), see `ops.encode_boxes`.
        config: says how many are sampled, and which are positive.
    """
    candidates = torch.cat([proposals.boxes, boxes], dim=1)
    _, classes, weights, box_weights, rois, deltas = assign_targets(
        candidates,
        boxes,
        labels,
        random_keys(seeds, candidates.shape[1], ROI_STREAM),
        delta_weights,
        thresholds=(config.roi_positive_iou, config.roi_positive_iou),
        size=config.roi_samples,
        positive_fraction=config.roi_positive_fraction,
        background=config.num_classes,
        valid=torch.cat([proposals.valid, labels >= 0], dim=1),
    )
    return ProposalTargets(rois, classes, deltas, weights, box_weights)
