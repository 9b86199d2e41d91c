"""A picture and its mirror image, looked at as if they were one.

A detector that was trained on mirrored pictures knows both, and errs a little differently in each. Where training
mirrors nothing, as with digits, a mirror image is a picture of something else.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.proposals import Proposals


class Regions(NamedTuple):
    """What the box head says of the regions that are proposed.

    Attributes:
        logits: (B, K, num_classes + 1).
        deltas: (B, K, D, 4).
        proposals: K of them for each image.
    """

    logits: Tensor
    deltas: Tensor
    proposals: Proposals


def both_ways(look: Callable[[Tensor], Regions], images: Tensor) -> Regions:
    """The regions of images (B, C, H, W) and of their mirror images, 2K for each: x runs the other way in the second
    half, and so does its delta."""
    logits, deltas, (boxes, valid) = look(images)
    their_logits, their_deltas, (their_boxes, their_valid) = look(images.flip(3))
    left, top, right, bottom = their_boxes.unbind(dim=2)
    width = images.shape[3]
    boxes = torch.cat([boxes, torch.stack([width - right, top, width - left, bottom], dim=2)], dim=1)
    deltas = torch.cat([deltas, their_deltas * deltas.new_tensor([-1.0, 1.0, 1.0, 1.0])], dim=1)
    return Regions(
        torch.cat([logits, their_logits], dim=1), deltas, Proposals(boxes, torch.cat([valid, their_valid], dim=1))
    )
