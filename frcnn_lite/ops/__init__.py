"""Functions on tensors that a detector is made of; they know torch and NumPy and nothing else of this package."""

from frcnn_lite.ops.boxes import box_area, box_iou, clip_boxes, decode_boxes, encode_boxes
from frcnn_lite.ops.matching import match
from frcnn_lite.ops.nms import nms_mask
from frcnn_lite.ops.proposals import generate_proposals
from frcnn_lite.ops.random_keys import random_keys
from frcnn_lite.ops.roi_align import align_weights, roi_align
from frcnn_lite.ops.roi_bins import roi_bins, round_half_away
from frcnn_lite.ops.roi_pool import roi_pool, roi_pool_with_argmax
from frcnn_lite.ops.sampling import sample
from frcnn_lite.ops.targets import assign_targets

__all__ = [
    "align_weights",
    "assign_targets",
    "box_area",
    "box_iou",
    "clip_boxes",
    "decode_boxes",
    "encode_boxes",
    "generate_proposals",
    "match",
    "nms_mask",
    "random_keys",
    "roi_align",
    "roi_bins",
    "roi_pool",
    "roi_pool_with_argmax",
    "round_half_away",
    "sample",
]
