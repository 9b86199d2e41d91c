"""From the RPN's predictions to a fixed number of proposals per image."""

from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.sampling import gather_rows
from frcnn_lite.ops import clip_boxes, decode_boxes, nms_mask


class Proposals(NamedTuple):
    """`boxes` (B, K, 4), and `valid` (B, K) bool: false where an image had fewer than K to propose."""

    boxes: Tensor
    valid: Tensor


@torch.no_grad()
def make_proposals(
    logits: Tensor,
    deltas: Tensor,
    anchors: Tensor,
    delta_weights: Tensor,
    image_size: tuple[int, int],
    config: FasterRCNNConfig,
) -> Proposals:
    """The best `config.proposals` boxes of each image: the best anchors decoded, clipped, and thinned by NMS.

    Without gradient, as in the paper: where a proposal lies is a constant to the box head.

    Args:
        logits: (B, N); deltas: (B, N, 4); anchors: (N, 4); delta_weights: (4,); image_size: (height, width) in pixels.
    """
    # Sorted rather than topk: topk leaves the order of equal scores open, and devices settle it differently.
    order = logits.argsort(dim=1, descending=True, stable=True)[:, : config.pre_nms_proposals]
    boxes = clip_boxes(decode_boxes(gather_rows(deltas, order), anchors[order], delta_weights), *image_size)
    keep = nms_mask(boxes, logits.gather(1, order), config.proposal_nms_iou)
    order = first_kept(keep, config.proposals)
    return Proposals(gather_rows(boxes, order), keep.gather(1, order))


def first_kept(keep: Tensor, size: int) -> Tensor:
    """Positions (B, size) int64 of each image's first kept rows, from keep (B, N) bool; rows that were not kept fill
    the slots that are left over."""
    return keep.logical_not().to(torch.uint8).argsort(dim=1, stable=True)[:, :size]
