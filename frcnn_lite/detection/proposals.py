"""From the RPN's predictions to a fixed number of proposals per image."""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.rpn import RPNOutput
from frcnn_lite.ops import clip_boxes, decode_boxes, nms_mask
from frcnn_lite.ops.sampling import gather_rows


class Proposals(NamedTuple):
    """`boxes` (B, K, 4), and `valid` (B, K) bool: false where an image had fewer than K to propose."""

    boxes: Tensor
    valid: Tensor


MIN_SIDE = 1e-3
"""In pixels; a proposal that clipping leaves thinner than this is dropped, as in torchvision."""


@torch.no_grad()
def make_proposals(
    rpn: RPNOutput, delta_weights: Tensor, image_size: tuple[int, int], config: FasterRCNNConfig
) -> Proposals:
    """The best `config.proposals` boxes of each image: the best anchors of each level decoded, clipped, and thinned by
    NMS within their level.

    Without gradient, as in the paper: where a proposal lies is a constant to the box head.

    Args:
        delta_weights: (4,); image_size: (height, width) in pixels.
    """
    scores, order = _best_of_levels(rpn, config.pre_nms_proposals)
    boxes = decode_boxes(gather_rows(rpn.deltas, order), rpn.anchors[order], delta_weights)
    boxes = clip_boxes(boxes, *image_size)
    level = _level_of(order, rpn.levels)
    keep = nms_mask(boxes, scores, config.proposal_nms_iou, level)
    low, high = boxes.split(2, dim=2)
    keep &= ((high - low) >= MIN_SIDE).all(dim=2)
    order = first_kept(keep, config.proposals)
    return Proposals(gather_rows(boxes, order), keep.gather(1, order))


def _best_of_levels(rpn: RPNOutput, size: int) -> tuple[Tensor, Tensor]:
    """Scores and indices (B, K) of the best `size` anchors of each level, all by falling score."""
    if len(rpn.levels) == 1:
        return _best(rpn.logits, size)
    start, best = 0, []
    for logits in rpn.logits.split(rpn.levels, dim=1):
        best.append(_best(logits, size)[1] + start)
        start += logits.shape[1]
    order = torch.cat(best, dim=1)
    scores, by_score = _best(rpn.logits.gather(1, order), order.shape[1])
    return scores, order.gather(1, by_score)


def _best(scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The `size` best of scores (B, N) and their indices, by falling score."""
    # Sorted rather than topk: topk leaves the order of equal scores open, and devices settle it differently.
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return scores[:, :size], order[:, :size]


def _level_of(order: Tensor, levels: tuple[int, ...]) -> Tensor | None:
    """The level (B, K) that each index lies on; None when there is but one."""
    if len(levels) == 1:
        return None
    ends = itertools.accumulate(levels[:-1])
    return torch.stack([order >= end for end in ends]).sum(dim=0)


def first_kept(keep: Tensor, size: int) -> Tensor:
    """Positions (B, size) int64 of each image's first kept rows, from keep (B, N) bool; rows that were not kept fill
    the slots that are left over."""
    return keep.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :size]
