"""Two layers of a Faster R-CNN of 2017, which post 000 calls and does not print: NumPy, one image at a time.

Their shapes are those of the post's docstrings. Where the originals (Girshick's py-faster-rcnn and its descendants) draw
with `npr.choice`, these take the smallest of the random `keys` that they are given, as `frcnn_lite` does, so that both
draw the same. A is the number of anchors at a cell, H x W the size of the map.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DONTCARE_SHARE = 0.5
"""An anchor of which more than this lies in don't-care areas is left out."""


class Rule(NamedTuple):
    """Thresholds of IoU, how many samples an image gives, and which part of them may be positive."""

    positive_iou: float
    negative_iou: float
    samples: int
    positive_fraction: float


class AnchorTargets(NamedTuple):
    """`labels` (1, 1, A * H, W): 1, 0, or -1 for "do not train on it"; the others (1, 4 * A, H, W)."""

    labels: NDArray
    bbox_targets: NDArray
    inside_weights: NDArray
    outside_weights: NDArray


class RoiTargets(NamedTuple):
    """`rois` (S, 5), column 0 the image, always 0; `labels` (S, 1), 0 is background; the others (S, 4 * K)."""

    rois: NDArray
    labels: NDArray
    bbox_targets: NDArray
    inside_weights: NDArray
    outside_weights: NDArray


def anchor_target_layer(
    anchors: NDArray,
    size: tuple[int, int],
    gt_boxes: NDArray,
    gt_ishard: NDArray,
    dontcare_areas: NDArray,
    keys: NDArray,
    rule: Rule,
) -> AnchorTargets:
    """Label anchors (H * W * A, 4) by gt_boxes (G, 5), gt_ishard (G, 1) and dontcare_areas (D, 4); size is (H, W)."""
    iou = box_iou(anchors, gt_boxes[:, :4])
    labels = np.full(len(anchors), -1, dtype=np.int64)
    if len(gt_boxes):
        best = iou.max(axis=1)
        labels[best < rule.negative_iou] = 0
        labels[((iou == iou.max(axis=0)) & (iou.max(axis=0) > 0)).any(axis=1)] = 1
        labels[best >= rule.positive_iou] = 1
    else:
        labels[:] = 0
    for column in np.flatnonzero(gt_ishard):
        highest = iou[:, column].max()
        labels[(iou[:, column] >= rule.positive_iou) | ((iou[:, column] == highest) & (highest > 0))] = -1
    labels[in_dontcare(anchors, dontcare_areas)] = -1
    positive, negative = draw(labels == 1, labels == 0, keys, rule)
    labels[:] = -1
    labels[positive], labels[negative] = 1, 0

    targets, inside, outside = (np.zeros((len(anchors), 4), dtype=np.float32) for _ in range(3))
    if len(positive):
        targets[positive] = encode(gt_boxes[iou.argmax(axis=1)[positive], :4], anchors[positive])
    inside[positive] = 1
    outside[labels >= 0] = 1 / max(len(positive) + len(negative), 1)
    label_map = labels.reshape(1, *size, -1).transpose(0, 3, 1, 2).reshape(1, 1, -1, size[1])
    return AnchorTargets(
        label_map, *(x.reshape(1, *size, -1).transpose(0, 3, 1, 2) for x in (targets, inside, outside))
    )


def proposal_target_layer(
    rpn_rois: NDArray,
    gt_boxes: NDArray,
    gt_ishard: NDArray,
    dontcare_areas: NDArray,
    classes: int,
    keys: NDArray,
    rule: Rule,
) -> RoiTargets:
    """Sample rpn_rois (R, 5) and the true boxes (G, 5) themselves, by keys (R + G,); classes: background included."""
    boxes = np.concatenate([rpn_rois[:, 1:], gt_boxes[:, :4]])
    iou = box_iou(boxes, gt_boxes[:, :4])
    best = iou.max(axis=1, initial=0)
    left_out = in_dontcare(boxes, dontcare_areas)
    for column in np.flatnonzero(gt_ishard):
        left_out |= iou[:, column] >= rule.positive_iou
    foreground = best >= rule.positive_iou
    positive, negative = draw(foreground & ~left_out, ~foreground & ~left_out, keys, rule)
    kept = np.concatenate([positive, negative])

    labels = np.zeros((len(kept), 1), dtype=np.int64)
    targets, inside = (np.zeros((len(kept), 4 * classes), dtype=np.float32) for _ in range(2))
    for row, index in enumerate(positive):
        gt = gt_boxes[iou[index].argmax()]
        labels[row] = int(gt[4])
        columns = slice(4 * int(gt[4]), 4 * int(gt[4]) + 4)
        targets[row, columns] = encode(gt[None, :4], boxes[index, None])[0]
        inside[row, columns] = 1
    rois = np.concatenate([np.zeros((len(kept), 1), np.float32), boxes[kept]], axis=1)
    return RoiTargets(rois, labels, targets, inside, (inside > 0).astype(np.float32))


def draw(positive: NDArray, negative: NDArray, keys: NDArray, rule: Rule) -> tuple[NDArray, NDArray]:
    """Indices of the sampled positives and negatives, those of the smallest keys."""
    first, second = (np.flatnonzero(mask)[np.argsort(keys[mask], kind="stable")] for mask in (positive, negative))
    first = first[: int(rule.samples * rule.positive_fraction)]
    return first, second[: rule.samples - len(first)]


def box_iou(first: NDArray, second: NDArray) -> NDArray:
    """IoU (N, M) of boxes (N, 4) and (M, 4)."""
    shared = intersection(first, second)
    return shared / np.maximum(area(first)[:, None] + area(second) - shared, np.finfo(np.float32).tiny)


def in_dontcare(boxes: NDArray, areas: NDArray) -> NDArray:
    """Which boxes (N, 4) have more than half of themselves in the areas (D, 4); (N,) bool."""
    return intersection(boxes, areas).sum(axis=1) > DONTCARE_SHARE * area(boxes)


def intersection(first: NDArray, second: NDArray) -> NDArray:
    """Square pixels (N, M) that boxes (N, 4) and (M, 4) share."""
    sides = np.minimum(first[:, None, 2:], second[:, 2:]) - np.maximum(first[:, None, :2], second[:, :2])
    return sides.clip(0).prod(axis=2)


def area(boxes: NDArray) -> NDArray:
    """Square pixels (N,) of boxes (N, 4)."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def encode(boxes: NDArray, anchors: NDArray) -> NDArray:
    """Deltas (N, 4) from anchors to boxes."""
    size, own = boxes[:, 2:] - boxes[:, :2], anchors[:, 2:] - anchors[:, :2]
    shift = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) * 0.5 / own
    return np.concatenate([shift, np.log(size / own)], axis=1)
