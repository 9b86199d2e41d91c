"""A detector whose suppression stops after the first round."""

from collections.abc import Callable
from unittest import mock

from torch import Tensor

from frcnn_lite import data, engine
from frcnn_lite.detection import FasterRCNN, suppress


def one_round_only(iou: Tensor, scores: Tensor, iou_threshold: float, classes: Tensor | None = None) -> Tensor:
    """In place of `ops.nms_mask`: every box goes that any better one overlaps, removed ones included."""
    above = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    suppresses = (iou > iou_threshold) & (above[:, :, None] < above[:, None])
    if classes is not None:
        suppresses &= classes[:, :, None] == classes[:, None]
    return ~suppresses.any(dim=1)


def ap_with(rule: Callable[..., Tensor], detector: FasterRCNN, pictures: int) -> float:
    """The average precision of the detector on so many test pictures, with `rule` in place of `ops.nms_mask`."""
    with mock.patch.object(suppress, "nms_mask", rule):
        return engine.evaluate(detector, data.DigitScenes("test", pictures)).AP
