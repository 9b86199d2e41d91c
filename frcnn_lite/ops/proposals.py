"""Proposal generation: from scores and deltas of anchors to a fixed number of boxes per image."""

import functools
import itertools
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.ops.boxes import clip_boxes, decode_boxes
from frcnn_lite.ops.kernels import compiled
from frcnn_lite.ops.nms import nms_mask
from frcnn_lite.ops.sampling import gather_rows

MIN_SIDE = 1e-3
"""In pixels; a proposal that clipping leaves thinner than this is dropped, as in torchvision."""


@torch.no_grad()
def generate_proposals(
    logits: Tensor,
    deltas: Tensor,
    anchors: Tensor,
    delta_weights: Tensor,
    *,
    image_size: tuple[int, int],
    levels: tuple[int, ...],
    candidates: int,
    iou_threshold: float,
    size: int,
) -> tuple[Tensor, Tensor]:
    """The best anchors of each level decoded, clipped, and thinned by NMS within their level.

    Without gradient, as in the paper: where a proposal lies is a constant to the box head.

    Args:
        logits, deltas, anchors: (B, N), (B, N, 4) and (N, 4), of one dtype.
        delta_weights: (4,), see `ops.decode_boxes`.
        image_size: (height, width) in pixels.
        levels: how many of the N anchors lie on each level of a pyramid.
        candidates: how many of each level's best go into NMS.
        iou_threshold: see `ops.nms_mask`.
        size: how many boxes to give for an image.

    Returns:
        Boxes (B, K, 4) by falling score, and (B, K) bool, false where an image has no more to propose; K is `size`, or
        all candidates where they are fewer.

    Raises:
        ValueError: if the shapes do not fit.
    """
    arguments = (logits, deltas, anchors, delta_weights, image_size, levels, candidates, iou_threshold, size)
    # Other runtimes know the operators that the steps are made of, and a trace keeps no `no_grad`.
    if torch.compiler.is_exporting() or torch.jit.is_tracing():
        return generate_in_torch(*arguments)
    if deltas.shape != (*logits.shape, 4) or anchors.shape != deltas.shape[1:] or sum(levels) != anchors.shape[0]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (logits, deltas, anchors))
        raise ValueError(
            f"want logits (B, N), deltas (B, N, 4), anchors (N, 4) and levels that add up to N, got {shapes}, {levels}"
        )
    return torch.ops.frcnn_lite.generate_proposals(*arguments)


# One operator: its steps make some forty small tensors, where a compiled kernel needs ten.
torch.library.define(
    "frcnn_lite::generate_proposals",
    "(Tensor logits, Tensor deltas, Tensor anchors, Tensor delta_weights, SymInt[2] image_size, SymInt[] levels, "
    "int candidates, float iou_threshold, int size) -> (Tensor, Tensor)",
)


@torch.library.impl("frcnn_lite::generate_proposals", "default")
def _generate(*arguments: Any) -> tuple[Tensor, Tensor]:
    alike = {x.dtype for x in arguments[:4]} in ({torch.float32}, {torch.float64})
    kernel = compiled("proposals") if arguments[0].device.type == "cpu" and alike else None
    return (generate_in_torch if kernel is None else kernel.generate)(*arguments)


def generate_in_torch(
    logits: Tensor,
    deltas: Tensor,
    anchors: Tensor,
    delta_weights: Tensor,
    image_size: tuple[int, int],
    levels: tuple[int, ...],
    candidates: int,
    iou_threshold: float,
    size: int,
) -> tuple[Tensor, Tensor]:
    """What the operator means, step by step; on GPUs and in exported graphs, also what it does."""
    scores, order, level = best_candidates(logits, levels, candidates)
    boxes = decode_boxes(gather_rows(deltas, order), anchors[order], delta_weights)
    boxes = clip_boxes(boxes, *image_size)
    keep = nms_mask(boxes, scores, iou_threshold, level)
    low, high = boxes.split(2, dim=2)
    keep &= ((high - low) >= MIN_SIDE).all(dim=2)
    order = first_kept(keep, size)
    return gather_rows(boxes, order), keep.gather(1, order)


def best_candidates(logits: Tensor, levels: tuple[int, ...], count: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores, indices and level (B, K) of the best `count` anchors of each level, all by falling score; with one level,
    None for it."""
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


@torch.library.register_fake("frcnn_lite::generate_proposals")
def _(logits: Tensor, deltas: Tensor, anchors: Tensor, delta_weights: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    _, levels, candidates, _, size = others
    shape = logits.shape[0], min(size, sum(min(of_level, candidates) for of_level in levels))
    dtype = functools.reduce(torch.promote_types, (x.dtype for x in (deltas, anchors, delta_weights)))
    return deltas.new_empty((*shape, 4), dtype=dtype), logits.new_empty(shape, dtype=torch.bool)
