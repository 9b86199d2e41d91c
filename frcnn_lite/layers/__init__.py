"""Layers that replace loops: convolution by unfolding, bottlenecks side by side, many small Linears at once."""

from frcnn_lite.layers.bottleneck import Bottleneck, BottleneckConfig
from frcnn_lite.layers.fast_group_linear import FastGroupLinear
from frcnn_lite.layers.group_linear import GroupLinear, class_to_group
from frcnn_lite.layers.pack import pack_serial_blocks, pack_state_dicts, unpack, unpack_state_dict
from frcnn_lite.layers.unfold_conv import filter_matrix, fold, output_size, overlap_counts, unfold, unfold_conv2d

__all__ = [
    "Bottleneck",
    "BottleneckConfig",
    "FastGroupLinear",
    "GroupLinear",
    "class_to_group",
    "filter_matrix",
    "fold",
    "output_size",
    "overlap_counts",
    "pack_serial_blocks",
    "pack_state_dicts",
    "unfold",
    "unfold_conv2d",
    "unpack",
    "unpack_state_dict",
]
