"""The chain of the post up to its classifier: many channels reduced to few, read by every group, pooled to a vector."""

import torch
from torch import Tensor, nn

from course.kit.post_002.attention import AttentionBottleneck
from course.kit.post_002.bottleneck import Bottleneck, BottleneckConfig
from frcnn_lite.layers import pack_serial_blocks, unpack


def reduce_conv(in_channels: int, out_channels: int) -> nn.Sequential:
    """1x1 convolution, BatchNorm, ReLU: the post's `BasicConv(in_planes=2048, out_planes=512, kernel_size=1)`."""
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU()
    )


class SerialGroupFeatures(nn.Module):
    """One bottleneck after the other: (B, in, H, W) -> (B, groups, group_channels), maximum over positions."""

    def __init__(self, in_channels: int, groups: int, group_channels: int, attention: bool = False) -> None:
        super().__init__()
        self.in_channels, self.groups, self.group_channels = in_channels, groups, group_channels
        self.attention = attention
        self.reduce_conv = reduce_conv(in_channels, group_channels)
        self.attention_convs = nn.ModuleList(_branch(group_channels, attention) for _ in range(groups))
        self.gmp = nn.AdaptiveMaxPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.reduce_conv(x)
        pooled = [self.gmp(conv(x)).flatten(1) for conv in self.attention_convs]
        return torch.stack(pooled, dim=1)


class GroupFeatures(nn.Module):
    """All bottlenecks at once: (B, in, H, W) -> (B, groups, group_channels)."""

    def __init__(self, in_channels: int, groups: int, group_channels: int, attention: bool = False) -> None:
        super().__init__()
        self.in_channels, self.groups, self.group_channels = in_channels, groups, group_channels
        self.attention = attention
        self.reduce_conv = reduce_conv(in_channels, group_channels)
        self.attention_convs = _branch(group_channels, attention, groups)
        self.gmp = nn.AdaptiveMaxPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        out = self.gmp(self.attention_convs(self.reduce_conv(x)))
        # row-major order: group after group, each with its channels in order
        return out.view(x.shape[0], self.groups, self.group_channels)

    @classmethod
    def from_serial(cls, serial: SerialGroupFeatures) -> "GroupFeatures":
        """The loop-free chain with the weights of the serial one."""
        grouped = cls(serial.in_channels, serial.groups, serial.group_channels, serial.attention)
        grouped = grouped.to(next(serial.parameters()))
        grouped.reduce_conv.load_state_dict(serial.reduce_conv.state_dict())
        pack_serial_blocks(list(serial.attention_convs), grouped.attention_convs)
        return grouped.train(serial.training)

    def to_serial(self) -> SerialGroupFeatures:
        """The serial chain with the weights of this one."""
        serial = SerialGroupFeatures(self.in_channels, self.groups, self.group_channels, self.attention)
        serial = serial.to(next(self.parameters()))
        serial.reduce_conv.load_state_dict(self.reduce_conv.state_dict())
        branch = _branch(self.group_channels, self.attention)
        serial.attention_convs = nn.ModuleList(unpack(self.attention_convs, branch, self.groups))
        return serial.train(self.training)


def _branch(group_channels: int, attention: bool, groups: int = 1) -> Bottleneck:
    """`groups` branches of the post: squeezed by two, back to the same channels."""
    if group_channels < 2 or group_channels % 2:
        raise ValueError(f"`group_channels` must be an even number, squeezed by two, got {group_channels}")
    config = BottleneckConfig(group_channels, group_channels // 2, group_channels)
    return (AttentionBottleneck if attention else Bottleneck)(config, groups)
