"""Layers that replace loops: unfold convolution, grouped bottlenecks, grouped and per-class linear layers, einsum."""

from frcnn_lite.layers.advise import Advice, advise_bottleneck, advise_group_linear, faster_form
from frcnn_lite.layers.attention import ChannelAttention, SpatialAttention
from frcnn_lite.layers.bottleneck import Bottleneck, BottleneckConfig
from frcnn_lite.layers.class_head import ClassHead, ClassHeadConfig, SerialClassHead
from frcnn_lite.layers.einsum_explain import EinsumReading, explain
from frcnn_lite.layers.einsum_path import ContractionStep, contraction_path
from frcnn_lite.layers.graph_attention import GraphAttention
from frcnn_lite.layers.group_features import GroupFeatures, SerialGroupFeatures
from frcnn_lite.layers.group_linear import GroupDividedLinear, GroupLinear, class_to_group
from frcnn_lite.layers.grouped_bottleneck import GroupedBottleneck
from frcnn_lite.layers.measure import paired_times, peak_bytes
from frcnn_lite.layers.pack import pack_serial_blocks, pack_state_dicts, unpack, unpack_state_dict
from frcnn_lite.layers.residual_linear import GroupedResidualLinear, ResidualLinearBlock
from frcnn_lite.layers.unfold_conv import filter_matrix, fold, output_size, overlap_counts, unfold, unfold_conv2d

__all__ = [
    "Advice",
    "Bottleneck",
    "BottleneckConfig",
    "ChannelAttention",
    "ClassHead",
    "ClassHeadConfig",
    "ContractionStep",
    "EinsumReading",
    "GraphAttention",
    "GroupDividedLinear",
    "GroupFeatures",
    "GroupLinear",
    "GroupedBottleneck",
    "GroupedResidualLinear",
    "ResidualLinearBlock",
    "SerialClassHead",
    "SerialGroupFeatures",
    "SpatialAttention",
    "advise_bottleneck",
    "advise_group_linear",
    "class_to_group",
    "contraction_path",
    "explain",
    "faster_form",
    "filter_matrix",
    "fold",
    "output_size",
    "overlap_counts",
    "pack_serial_blocks",
    "pack_state_dicts",
    "paired_times",
    "peak_bytes",
    "unfold",
    "unfold_conv2d",
    "unpack",
    "unpack_state_dict",
]
