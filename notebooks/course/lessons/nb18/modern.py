"""The eight places of the guide's detector as of today: a new tensor takes its device from one that it meets."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course.kit import guide_2017 as guide
from course.lessons.nb18.puzzles.in_numpy import in_numpy
from frcnn_lite import ops, parallel


def rpn_loss(self: nn.Module, score: Tensor, deltas: Tensor, rpn_data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    labels, targets, inside, _ = rpn_data
    logits = score.permute(0, 2, 3, 1).reshape(-1, 2)
    cross_entropy = F.cross_entropy(logits, labels.flatten(), ignore_index=-1)  # in the place of rpn_keep
    box = F.smooth_l1_loss(deltas * inside, targets * inside, reduction="sum")
    return cross_entropy, box / ((labels > 0).sum() + 1e-4)


def head_loss(self: nn.Module, scores: Tensor, deltas: Tensor, roi_data: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    _, labels, targets, inside, _ = roi_data
    labels = labels.flatten()
    foreground = (labels > 0).sum()
    weights = torch.ones_like(scores[0])  # in the place of ce_weights
    weights[0] = foreground / (labels.numel() - foreground + 1e-4)
    rows = weights[labels]
    losses = F.cross_entropy(scores, labels, reduction="none") * rows
    box = F.smooth_l1_loss(deltas * inside, targets * inside, reduction="sum")
    return losses.sum() / rows.sum().clamp(min=1e-4), box / (foreground + 1e-4)


def modern_parts() -> guide.Parts:
    """The parts of `guide.build`: every layer, loss and the pooling as one would write it, and a forward that returns
    the losses of both networks."""
    numpy_parts = guide.numpy_parts()
    size = (guide.completed()["POOLED"],) * 2
    parts: guide.Parts = {
        "np_to_variable": parallel.from_numpy,
        "proposal_layer": lambda *given: in_numpy(numpy_parts["proposal_layer"], *given)[0],
        "anchor_target_layer": lambda *given: in_numpy(numpy_parts["anchor_target_layer"], *given),
        "proposal_target_layer": lambda *given: in_numpy(numpy_parts["proposal_target_layer"], *given),
        "RPN.build_loss": rpn_loss,
        "FasterRCNN.build_loss": head_loss,
        "roi_pool": lambda features, rois: ops.roi_pool(features, rois, size, 1 / guide.completed()["STRIDE"]),
    }
    return parts | guide.with_rpn_loss()
