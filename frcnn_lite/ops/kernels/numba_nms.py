"""Greedy NMS over a batch, compiled for the CPU by numba."""

import numba
import numpy as np
import torch
from torch import Tensor


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _keep_sorted(boxes, classes, per_class, threshold, zero, keep):  # type: ignore[no-untyped-def]
    for b in range(boxes.shape[0]):
        x1, y1, x2, y2 = boxes[b, :, 0], boxes[b, :, 1], boxes[b, :, 2], boxes[b, :, 3]
        area = (x2 - x1) * (y2 - y1)
        for i in range(boxes.shape[1]):
            if not keep[b, i]:
                continue
            for j in range(i + 1, boxes.shape[1]):
                if not keep[b, j] or (per_class and classes[b, i] != classes[b, j]):
                    continue
                width = max(zero, min(x2[i], x2[j]) - max(x1[i], x1[j]))
                height = max(zero, min(y2[i], y2[j]) - max(y1[i], y1[j]))
                intersection = width * height
                if intersection / (area[i] + area[j] - intersection) > threshold:
                    keep[b, j] = False


def keep_sorted(boxes: Tensor, classes: Tensor | None, threshold: float) -> Tensor:
    """Kept boxes (B, K) bool of boxes (B, K, 4) that stand in descending order of score."""
    keep = torch.ones(boxes.shape[:2], dtype=torch.bool)
    corners = boxes.contiguous().numpy()
    groups = np.empty((0, 0), np.int64) if classes is None else classes.contiguous().numpy()
    number = corners.dtype.type  # typed scalars: a Python float would lift the arithmetic to double
    _keep_sorted(corners, groups, classes is not None, number(threshold), number(0), keep.numpy())
    return keep
