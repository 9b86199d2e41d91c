"""The bottleneck of a ResNet, and any number of them side by side in one module.

A module of `groups` bottlenecks is as one bottleneck, with every layer `groups` times as wide: block k of its channels
belongs to bottleneck k. `pack_serial_blocks` of `frcnn_lite.layers` brings the weights of trained bottlenecks
into it, and `unpack` takes them back.

Source: `Parallel_AttentionBottleneck` and `Parallel_Bottleneck` of a post of about 2019 on grouped convolution, whose
`expand = 2` is `out_channels` here, and whose `groups=12` is the argument `groups`.
"""

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class BottleneckConfig:
    """Everything that makes one bottleneck: channels in, squeezed and out, and its options.

    `downsample` puts a 1x1 convolution and BatchNorm on the shortcut; it is needed when stride or channels change.
    """

    in_channels: int
    mid_channels: int
    out_channels: int
    stride: int = 1
    downsample: bool = False
    eps: float = 1e-5
    momentum: float | None = 0.1

    def __post_init__(self) -> None:
        if (self.stride != 1 or self.in_channels != self.out_channels) and not self.downsample:
            raise ValueError(
                f"`downsample` must be True, since the input ({self.in_channels} channels) cannot be added to an "
                f"output of {self.out_channels} channels at stride {self.stride}, got False"
            )


class Bottleneck(nn.Module):
    """1x1 squeeze, 3x3, 1x1 expand, each with BatchNorm, around a shortcut; `groups` times in one module.

    Shapes: x (B, in, H, W) when `shared_input`, else (B, groups * in, H, W) -> (B, groups * out, H', W').
    With `shared_input` all groups read the same features. Then the first convolution is not grouped, since the filters
    of each group see *all* input channels, and the shortcut is broadcast, never copied.
    BatchNorm keeps its statistics per channel, so that of `groups * C` channels is `groups` of C without change.
    Raises ValueError for an input of different channels, and for `groups` below 1.
    """

    def __init__(self, config: BottleneckConfig, groups: int = 1, shared_input: bool = True) -> None:
        super().__init__()
        if groups < 1:
            raise ValueError(f"`groups` must be 1 or more, got {groups}")
        self.config, self.groups, self.shared_input = config, groups, shared_input
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
        self.downsample = None
        if c.downsample:
            self.downsample = nn.Sequential(
                nn.Conv2d(self.in_channels, g * c.out_channels, 1, stride=c.stride, bias=False, groups=in_groups),
                nn.BatchNorm2d(g * c.out_channels, c.eps, c.momentum),
            )

    def forward(self, x: Tensor) -> Tensor:
        """(B, in or groups * in, H, W) -> (B, groups * out, H', W')."""
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            whose = f", one input for all {self.groups} groups" if self.shared_input else f", {self.groups} groups"
            wanted = f"(B, {self.in_channels}, H, W){whose if self.groups > 1 else ''}"
            raise ValueError(f"`x` must be {wanted}, got {tuple(x.shape)}")
        return self.relu(self.add_shortcut(self.branch(x), x))

    def branch(self, x: Tensor) -> Tensor:
        """What is added to the shortcut: the three convolutions."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.bn3(self.conv3(out))

    def add_shortcut(self, out: Tensor, x: Tensor) -> Tensor:
        """`out` (B, groups * out, H, W) plus each group's shortcut, none of them copied."""
        if self.downsample is not None:
            return out + self.downsample(x)
        if not self.shared_input:
            return out + x
        return (out.unflatten(1, (self.groups, -1)) + x.unsqueeze(1)).flatten(1, 2)
