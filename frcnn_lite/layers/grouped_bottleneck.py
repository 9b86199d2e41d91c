"""Twelve bottlenecks side by side in one module: each channel of the result belongs to one of them."""

from torch import Tensor, nn

from frcnn_lite.layers.attention import ChannelAttention, SpatialAttention
from frcnn_lite.layers.bottleneck import BottleneckConfig


class GroupedBottleneck(nn.Module):
    """`groups` bottlenecks as one: every layer is `groups` times as wide, and group k owns the k-th block of channels.

    Shapes: x (B, in, H, W) when `shared_input`, else (B, groups * in, H, W) -> (B, groups * out, H', W').
    `shared_input` is the post's case: all groups read the same features. Then the first convolution stays ungrouped,
    since each group's filters see *all* input channels, and the shortcut is broadcast, never copied.
    BatchNorm keeps its statistics per channel, so that of `groups * C` channels is `groups` of C without change.
    Build it from serial blocks with `pack_serial_blocks`. Source: `Parallel_Bottleneck` of the post.
    """

    def __init__(self, groups: int, config: BottleneckConfig, shared_input: bool = True) -> None:
        super().__init__()
        if groups < 1:
            raise ValueError(f"groups: expected 1 or more, got {groups}")
        self.groups, self.config, self.shared_input = groups, config, shared_input
        c, g = config, groups
        self.in_channels = c.in_channels if shared_input else g * c.in_channels
        in_groups = 1 if shared_input else g
        self.conv1 = nn.Conv2d(self.in_channels, g * c.mid_channels, kernel_size=1, bias=False, groups=in_groups)
        self.bn1 = nn.BatchNorm2d(g * c.mid_channels, c.eps, c.momentum)
        self.conv2 = nn.Conv2d(
            g * c.mid_channels, g * c.mid_channels, 3, stride=c.stride, padding=1, bias=False, groups=g
        )
        self.bn2 = nn.BatchNorm2d(g * c.mid_channels, c.eps, c.momentum)
        self.conv3 = nn.Conv2d(g * c.mid_channels, g * c.out_channels, kernel_size=1, bias=False, groups=g)
        self.bn3 = nn.BatchNorm2d(g * c.out_channels, c.eps, c.momentum)
        self.relu = nn.ReLU(inplace=True)
        self.ca = ChannelAttention(c.out_channels, c.reduction, groups=g) if c.attention else None
        self.sa = SpatialAttention(groups=g) if c.attention else None
        self.downsample = None
        if c.downsample:
            self.downsample = nn.Sequential(
                nn.Conv2d(self.in_channels, g * c.out_channels, 1, stride=c.stride, bias=False, groups=in_groups),
                nn.BatchNorm2d(g * c.out_channels, c.eps, c.momentum),
            )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            whose = f"one input for all {self.groups} groups" if self.shared_input else f"{self.groups} groups"
            raise ValueError(f"x: expected (B, {self.in_channels}, H, W), {whose}, got {tuple(x.shape)}")
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.ca is not None and self.sa is not None:
            out = self.ca(out) * out
            out = self.sa(out) * out
        return self.relu(self.add_shortcut(out, x))

    def add_shortcut(self, out: Tensor, x: Tensor) -> Tensor:
        """`out` (B, groups * out, H, W) plus each group's shortcut, none of them copied."""
        if self.downsample is not None:
            return out + self.downsample(x)
        if not self.shared_input:
            return out + x
        return (out.unflatten(1, (self.groups, -1)) + x.unsqueeze(1)).flatten(1, 2)
