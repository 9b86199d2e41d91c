"""From the RPN's predictions to a fixed number of proposals per image."""

from typing import NamedTuple

from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.rpn import RPNOutput
from frcnn_lite.ops.proposals import generate_proposals


class Proposals(NamedTuple):
    """`boxes` (B, K, 4), and `valid` (B, K) bool: false where an image had fewer than K to propose."""

    boxes: Tensor
    valid: Tensor


def make_proposals(
    rpn: RPNOutput, delta_weights: Tensor, image_size: tuple[int, int], config: FasterRCNNConfig
) -> Proposals:
    """The best `config.proposals` boxes of each image, see `ops.generate_proposals`.

    Args:
        delta_weights: (4,); image_size: (height, width) in pixels.
    """
    boxes, valid = generate_proposals(
        rpn.logits,
        rpn.deltas,
        rpn.anchors,
        delta_weights,
        image_size=image_size,
        levels=rpn.levels,
        candidates=config.pre_nms_proposals,
        iou_threshold=config.proposal_nms_iou,
        size=config.proposals,
    )
    return Proposals(boxes, valid)
