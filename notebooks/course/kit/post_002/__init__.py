"""The network of the post on grouped convolution and einsum (about 2019), completed: what it names and does not show.

Each part once with the post's loops and once without, with weights that convert both ways.
"""

from course.kit.post_002.attention import AttentionBottleneck, ChannelAttention, SpatialAttention
from course.kit.post_002.bottleneck import Bottleneck, BottleneckConfig
from course.kit.post_002.class_head import ClassHead, ClassHeadConfig, SerialClassHead
from course.kit.post_002.graph_attention import GraphAttention
from course.kit.post_002.group_features import GroupFeatures, SerialGroupFeatures
from course.kit.post_002.residual_linear import GroupedResidualLinear, ResidualLinearBlock

__all__ = [
    "AttentionBottleneck",
    "Bottleneck",
    "BottleneckConfig",
    "ChannelAttention",
    "ClassHead",
    "ClassHeadConfig",
    "GraphAttention",
    "GroupFeatures",
    "GroupedResidualLinear",
    "ResidualLinearBlock",
    "SerialClassHead",
    "SerialGroupFeatures",
    "SpatialAttention",
]
