"""Greedy NMS over a batch, compiled for the CPU by numba."""

import numba
import numpy as np
import torch
from torch import Tensor


@numba.njit(nogil=True, cache=True, error_model="numpy")
def iou_with_later(i, x1, y1, x2, y2, area, zero, iou):  # type: ignore[no-untyped-def]
    """IoU of box i with every later one, also with those already gone: free of branches and of other types, this loop
    is turned into vector code, which is twice as fast as testing each pair first."""
    left_i, top_i, right_i, bottom_i, area_i = x1[i], y1[i], x2[i], y2[i], area[i]
    for j in range(i + 1, area.size):
        left = x1[j] if x1[j] > left_i else left_i
        top = y1[j] if y1[j] > top_i else top_i
        right = x2[j] if x2[j] < right_i else right_i
        bottom = y2[j] if y2[j] < bottom_i else bottom_i
        width = right - left if right > left else zero
        height = bottom - top if bottom > top else zero
        intersection = width * height
        iou[j] = intersection / (area_i + area[j] - intersection)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _keep_sorted(corners, classes, threshold, zero, keep):  # type: ignore[no-untyped-def]
    iou = np.empty(keep.shape[1], corners.dtype)
    for b in range(corners.shape[0]):
        x1, y1, x2, y2 = corners[b, 0], corners[b, 1], corners[b, 2], corners[b, 3]
        area = (x2 - x1) * (y2 - y1)
        for i in range(area.size):
            if keep[b, i]:
                iou_with_later(i, x1, y1, x2, y2, area, zero, iou)
                for j in range(i + 1, area.size):
                    if iou[j] > threshold and classes[b, i] == classes[b, j]:
                        keep[b, j] = False


def keep_sorted(boxes: Tensor, classes: Tensor | None, threshold: float) -> Tensor:
    """Kept boxes (B, K) bool of boxes (B, K, 4) that stand in descending order of score."""
    keep = torch.ones(boxes.shape[:2], dtype=torch.bool)
    groups = torch.zeros(boxes.shape[:2], dtype=torch.int64) if classes is None else classes.contiguous()
    corners = boxes.transpose(1, 2).contiguous().numpy()
    number = corners.dtype.type  # typed scalars: a Python float would lift the arithmetic to double
    _keep_sorted(corners, groups.numpy(), number(threshold), number(0), keep.numpy())
    return keep
