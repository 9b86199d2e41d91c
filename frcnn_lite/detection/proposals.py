"""From the RPN's scores and deltas of anchors to a fixed number of proposals per image."""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.rpn import RPNOutput
from frcnn_lite.detection.suppress import suppress
from frcnn_lite.ops import clip_boxes, decode_boxes
from frcnn_lite.ops.sampling import gather_rows

MIN_SIDE = 1e-3
"""In pixels; a proposal that clipping leaves thinner than this is dropped, as in torchvision."""


class Proposals(NamedTuple):
    """`boxes` (B, K, 4) by falling score, and `valid` (B, K) bool: false where an image has no more to propose. K is
    `config.proposals`, or all candidates where they are fewer."""

    boxes: Tensor
    valid: Tensor


@torch.no_grad()
def make_proposals(
    rpn: RPNOutput, delta_weights: Tensor, image_size: tuple[int, int], config: FasterRCNNConfig
) -> Proposals:
    """The best anchors of each level decoded, clipped, and thinned by NMS within their level.

    Without gradient, as in the paper: the place of a proposal is a constant to the box head.

    Args:
        delta_weights: (4,), see `ops.decode_boxes`.
        image_size: (height, width) in pixels.
    """
    scores, order, level = best_candidates(rpn.logits, rpn.levels, config.pre_nms_proposals)
    boxes = decode_boxes(gather_rows(rpn.deltas, order), rpn.anchors[order], delta_weights)
    boxes = clip_boxes(boxes, *image_size)
    keep = suppress(boxes, scores, config.proposal_nms_iou, level)
    low, high = boxes.split(2, dim=2)
    keep &= ((high - low) >= MIN_SIDE).all(dim=2)
    order = first_kept(keep, config.proposals)
    return Proposals(gather_rows(boxes, order), keep.gather(1, order))


def best_candidates(logits: Tensor, levels: tuple[int, ...], count: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """The best anchors of each level, all of them by falling score.

    Args:
        logits: (B, N), level after level.
        levels: how many anchors each has.
        count: how many of a level are taken at most.

    Returns:
        Scores, indices and level, each (B, K); with one level, None in place of the last.
    """
    if len(levels) == 1:
        return *_best(logits, count), None
    start, best = 0, []
    for of_level in logits.split(levels, dim=1):
        best.append(_best(of_level, count)[1] + start)
        start += of_level.shape[1]
    order = torch.cat(best, dim=1)
    scores, by_score = _best(logits.gather(1, order), order.shape[1])
    order = order.gather(1, by_score)
    ends = itertools.accumulate(levels[:-1])
    return scores, order, torch.stack([order >= end for end in ends]).sum(dim=0)


def _best(scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The `size` best of scores (B, N) and their indices, by falling score."""
    # Sorted rather than topk: topk leaves the order of equal scores open, and devices settle it differently.
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return scores[:, :size], order[:, :size]


def first_kept(keep: Tensor, size: int) -> Tensor:
    """Positions (B, size) int64 of each image's first kept rows, from keep (B, N) bool; rows that were not kept fill
    the slots that are left over."""
    return keep.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :size]
