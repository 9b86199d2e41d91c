"""Functions on tensors that a detector is made of. Each file can be used alone: it needs torch and no other file."""

from frcnn_lite.ops.boxes import box_iou, clip_boxes, decode_boxes, encode_boxes
from frcnn_lite.ops.matching import match
from frcnn_lite.ops.nms import nms_mask
from frcnn_lite.ops.random_keys import random_keys
from frcnn_lite.ops.roi_align import roi_align
from frcnn_lite.ops.roi_pool import roi_bins, roi_pool, roi_pool_with_argmax, round_half_away
from frcnn_lite.ops.sampling import sample

__all__ = [
    "box_iou",
    "clip_boxes",
    "decode_boxes",
    "encode_boxes",
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
