"""The detector: batch-first, with static shapes, and the same losses however a batch is split over devices."""

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.faster_rcnn import FasterRCNN
from frcnn_lite.detection.losses import LossParts
from frcnn_lite.detection.postprocess import Detections

__all__ = ["Detections", "FasterRCNN", "FasterRCNNConfig", "LossParts"]
