"""Target assignment compiled for the CPU by numba: no matrix of overlaps, and one call instead of a hundred."""

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.ops.boxes import MIN_SIZE
from frcnn_lite.ops.kernels.numba_roi_pool import njit
from frcnn_lite.ops.matching import BACKGROUND, IGNORED


@njit
def _overlaps(box, corners, area, zero, tiny, iou):  # type: ignore[no-untyped-def]
    """IoU of `box` (4,) with every column of `corners` (4, N); a loop without branches becomes vector code."""
    left_of, top_of, right_of, bottom_of = box[0], box[1], box[2], box[3]
    own = (right_of - left_of) * (bottom_of - top_of)
    x1, y1, x2, y2 = corners[0], corners[1], corners[2], corners[3]
    for n in range(iou.size):
        left = x1[n] if x1[n] > left_of else left_of
        top = y1[n] if y1[n] > top_of else top_of
        right = x2[n] if x2[n] < right_of else right_of
        bottom = y2[n] if y2[n] < bottom_of else bottom_of
        width = right - left if right > left else zero
        height = bottom - top if bottom > top else zero
        intersection = width * height
        union = own + area[n] - intersection
        iou[n] = intersection / (union if union > tiny else tiny)


@njit
def _match(corners, valid, boxes, labels, limits, low_quality, matched):  # type: ignore[no-untyped-def]
    """`match` for one image: the index of a box, BACKGROUND or IGNORED for every candidate."""
    positive_iou, negative_iou, zero, tiny = limits
    area = (corners[2] - corners[0]) * (corners[3] - corners[1])
    best, iou = np.full_like(area, -1), np.empty_like(area)
    nearest, rescued = np.zeros(area.size, np.int64), np.zeros(area.size, np.bool_)
    for m in range(boxes.shape[0]):
        if labels[m] >= 0:
            _overlaps(boxes[m], corners, area, zero, tiny, iou)
            for n in range(area.size):
                if iou[n] > best[n]:
                    best[n], nearest[n] = iou[n], m
            highest = iou.max()
            if low_quality and highest > 0:
                rescued |= iou == highest
    for n in range(area.size):
        if not valid[n]:
            matched[n] = IGNORED
        elif rescued[n] or best[n] >= max(positive_iou, negative_iou):
            matched[n] = nearest[n]
        else:
            matched[n] = BACKGROUND if best[n] < negative_iou else IGNORED


@njit
def _encode(box, reference, weights, least, half, deltas):  # type: ignore[no-untyped-def]
    for k in range(2):
        size = max(box[k + 2] - box[k], least)
        own = max(reference[k + 2] - reference[k], least)
        shift = (box[k] + box[k + 2]) * half - (reference[k] + reference[k + 2]) * half
        deltas[k] = shift / own * weights[k]
        deltas[k + 2] = np.log(size / own) * weights[k + 2]


@njit
def _assign(candidates, valid, boxes, labels, keys, delta_weights, limits, encoding, rule, targets):  # type: ignore[no-untyped-def]
    """`candidates` (B or 1, N, 4), `valid` (B or 1, N); fills `targets`, in the order of `Targets`."""
    least, half = encoding
    most, low_quality, background = rule
    indices, found, weights, box_weights, chosen, deltas = targets
    last = keys.shape[1] - 1
    matched = np.empty(last + 1, np.int64)
    for b in range(boxes.shape[0]):
        own = candidates[b % candidates.shape[0]]
        rows = np.ascontiguousarray(own.T)
        _match(rows, valid[b % valid.shape[0]], boxes[b], labels[b], limits, low_quality, matched)
        # As in `sample`: positives, background, ignored, each in the order of their keys.
        order = np.argsort(keys[b] - np.minimum(matched, 0).astype(keys.dtype), kind="mergesort")
        positives, usable = (matched >= 0).sum(), (matched > IGNORED).sum()
        for s in range(indices.shape[1]):
            place = s + (max(positives - most, 0) if s >= most else 0)
            n = order[min(place, last)]
            positive, nearest = matched[n] >= 0, max(matched[n], 0)
            indices[b, s], found[b, s] = n, labels[b, nearest] if positive else background
            weights[b, s], box_weights[b, s] = place < usable, place < usable and positive
            chosen[b, s] = own[n]
            _encode(boxes[b, nearest], own[n], delta_weights, least, half, deltas[b, s])


def assign(
    candidates: Tensor,
    valid: Tensor | None,
    boxes: Tensor,
    labels: Tensor,
    keys: Tensor,
    delta_weights: Tensor,
    positive_iou: float,
    negative_iou: float,
    size: int,
    positive_fraction: float,
    allow_low_quality: bool,
    background: int,
) -> tuple[Tensor, ...]:
    """Like `ops.targets.assign_in_torch`; float32 or float64 boxes."""
    candidates = candidates.view(-1, *candidates.shape[-2:])
    valid = torch.ones(1, candidates.shape[1], dtype=torch.bool) if valid is None else valid
    slots = (len(boxes), size)
    targets = tuple(
        boxes.new_empty(shape, dtype=dtype)
        for shape, dtype in ((slots, torch.int64), (slots, boxes.dtype), ((*slots, 4), boxes.dtype))
        for _ in range(2)
    )
    # Typed scalars: a Python float would lift the arithmetic to double.
    number = boxes.numpy().dtype.type
    limits = tuple(map(number, (positive_iou, negative_iou, 0, torch.finfo(boxes.dtype).tiny)))
    encoding = number(MIN_SIZE), number(0.5)
    arrays = [x.contiguous().numpy() for x in (candidates, valid, boxes, labels, keys, delta_weights.to(boxes.dtype))]
    rule = (int(size * positive_fraction), allow_low_quality, background)
    _assign(*arrays, limits, encoding, rule, tuple(x.numpy() for x in targets))  # type: ignore[call-arg]
    return targets
