"""From class logits and deltas to a fixed number of detections per image."""

from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.proposals import Proposals, first_kept
from frcnn_lite.detection.suppress import suppress
from frcnn_lite.ops import box_iou, clip_boxes, decode_boxes
from frcnn_lite.ops.sampling import gather_rows


class Detections(NamedTuple):
    """D detections for each image, in descending order of score.

    Attributes:
        boxes: (B, D, 4) xyxy pixels.
        scores: (B, D) in 0..1.
        labels: (B, D) int64.
        valid: (B, D) bool, false where an image has fewer than D detections; the score is then 0.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    valid: Tensor


@torch.no_grad()
def make_detections(
    logits: Tensor,
    deltas: Tensor,
    proposals: Proposals,
    delta_weights: Tensor,
    image_size: tuple[int, int],
    config: FasterRCNNConfig,
) -> Detections:
    """Score every (proposal, class) pair, thin each class by NMS, and keep the best `config.detections`.

    Args:
        logits: (B, K, num_classes + 1), the background last.
        deltas: (B, K, D, 4); D is num_classes, or 1 for all classes together.
        proposals: K of them for each image.
        delta_weights: (4,), see `ops.decode_boxes`.
        image_size: (height, width) in pixels.
    """
    boxes = clip_boxes(decode_boxes(deltas, proposals.boxes.unsqueeze(2), delta_weights), *image_size)
    boxes = boxes.expand(-1, -1, config.num_classes, -1).flatten(1, 2)
    scores = logits.softmax(dim=-1)[..., :-1] * proposals.valid.unsqueeze(-1)
    scores, order = scores.flatten(1).sort(dim=1, descending=True, stable=True)
    scores, order = scores[:, : config.pre_nms_detections], order[:, : config.pre_nms_detections]
    labels = order % config.num_classes
    boxes = gather_rows(boxes, order)
    # Candidates below the threshold have lower scores than all others, so they suppress none of them.
    keep = suppress(boxes, scores, config.detection_nms_iou, labels) & (scores > config.score_threshold)
    if config.voting_iou < 1:
        boxes = vote(boxes, scores, labels, config.voting_iou)
    order = first_kept(keep, config.detections)
    valid = keep.gather(1, order)
    return Detections(gather_rows(boxes, order), scores.gather(1, order) * valid, labels.gather(1, order), valid)


def vote(boxes: Tensor, scores: Tensor, labels: Tensor, least_iou: float) -> Tensor:
    """Every box as the mean, weighted by score, of those of its class that overlap it.

    NMS keeps the box of the highest score; its neighbours saw the same object and err another way (S. Gidaris and N.
    Komodakis, "Object detection via a multi-region and semantic segmentation-aware CNN model", 2015: bounding box
    voting).

    Args:
        boxes: (B, N, 4).
        scores: (B, N).
        labels: (B, N) int64.
        least_iou: a box has a vote from this overlap on.

    Returns:
        Boxes (B, N, 4) in the same order.
    """
    voters = (box_iou(boxes, boxes) >= least_iou) & (labels.unsqueeze(2) == labels.unsqueeze(1))
    weights = (voters * scores.unsqueeze(1)).unsqueeze(3)
    total = weights.sum(dim=2)
    voted = (weights * boxes.unsqueeze(1)).sum(dim=2) / total  # no matmul, which autocast would take to half precision
    return torch.where(total > 0, voted, boxes)  # a box without area overlaps not even itself
