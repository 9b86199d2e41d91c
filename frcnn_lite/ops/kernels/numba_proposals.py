"""Proposal generation compiled for the CPU by numba: one pass over the candidates, no longer than it takes."""

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.ops.boxes import MAX_LOG_SCALE
from frcnn_lite.ops.kernels.numba_nms import iou_with_later
from frcnn_lite.ops.kernels.numba_roi_pool import njit
from frcnn_lite.ops.nms import round_down
from frcnn_lite.ops.proposals import MIN_SIDE, best_candidates
from frcnn_lite.ops.sampling import gather_rows


@njit
def _decode(order, shift, scale, anchors, sides, numbers, corners):  # type: ignore[no-untyped-def]
    """Clipped boxes of one image as corners (4, K); in the order of `decode_boxes`, so that the bits are the same."""
    zero, half = numbers
    for n in range(order.size):
        anchor = anchors[order[n]]
        for k in range(2):
            size = anchor[k + 2] - anchor[k]
            center = (anchor[k] + anchor[k + 2]) * half + shift[n, k] * size
            reach = size * scale[n, k] * half
            corners[k, n] = min(max(center - reach, zero), sides[k])
            corners[k + 2, n] = min(max(center + reach, zero), sides[k])


@njit
def _generate(order, level, shift, scale, anchors, sides, numbers, limits, boxes, valid):  # type: ignore[no-untyped-def]
    """Candidates in falling order of score; `shift` and `scale` (B, K, 2) move and stretch their anchors."""
    threshold, least = limits
    count, size = order.shape[1], valid.shape[1]
    corners, iou = np.empty((4, count), anchors.dtype), np.empty(count, anchors.dtype)
    alive, taken = np.empty(count, np.bool_), np.empty(count, np.bool_)
    x1, y1, x2, y2 = corners[0], corners[1], corners[2], corners[3]
    for b in range(order.shape[0]):
        _decode(order[b], shift[b], scale[b], anchors, sides, numbers, corners)
        area = (x2 - x1) * (y2 - y1)
        alive[:], taken[:] = True, False
        found = 0
        for i in range(count):
            if found == size:
                break
            if not alive[i]:
                continue
            if x2[i] - x1[i] >= least and y2[i] - y1[i] >= least:
                boxes[b, found], valid[b, found], taken[i] = corners[:, i], True, True
                found += 1
            iou_with_later(i, x1, y1, x2, y2, area, numbers[0], iou)
            for j in range(i + 1, count):
                if iou[j] > threshold and level[b, i] == level[b, j]:
                    alive[j] = False
        for i in range(count):
            if found < size and not taken[i]:
                boxes[b, found], valid[b, found] = corners[:, i], False
                found += 1


def generate(
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
    """Like `ops.proposals.generate_in_torch`; float32 or float64."""
    _, order, level = best_candidates(logits, levels, candidates)
    shift, log_scale = (gather_rows(deltas, order) / delta_weights).split(2, dim=2)
    scale = log_scale.clamp(max=MAX_LOG_SCALE).exp()
    level = torch.zeros_like(order) if level is None else level
    boxes = deltas.new_empty(len(order), min(size, order.shape[1]), 4)
    valid = torch.empty(boxes.shape[:2], dtype=torch.bool)
    # Typed scalars: a Python float would lift the arithmetic to double.
    number = boxes.numpy().dtype.type
    height, width = map(number, image_size)
    limits = number(round_down(iou_threshold, boxes.dtype)), number(MIN_SIDE)
    arrays = [x.detach().contiguous().numpy() for x in (order, level, shift, scale, anchors)]
    _generate(*arrays, (width, height), (number(0), number(0.5)), limits, boxes.numpy(), valid.numpy())  # type: ignore[call-arg]
    return boxes, valid
