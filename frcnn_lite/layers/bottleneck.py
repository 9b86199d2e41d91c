"""The attention bottleneck of the post, one branch at a time: squeeze, 3x3, expand, add the input."""

from dataclasses import dataclass

from torch import Tensor, nn

from frcnn_lite.layers.attention import ChannelAttention, SpatialAttention


@dataclass(frozen=True)
class BottleneckConfig:
    """Everything that makes a bottleneck: channels in, squeezed and out, and its options.

    `downsample` puts a 1x1 convolution and BatchNorm on the shortcut; it is needed when stride or channels change.
    `attention` adds channel, then spatial attention before the shortcut is added.
    """

    in_channels: int
    mid_channels: int
    out_channels: int
    stride: int = 1
    downsample: bool = False
    attention: bool = False
    reduction: int = 16
    eps: float = 1e-5
    momentum: float | None = 0.1

    def __post_init__(self) -> None:
        if (self.stride != 1 or self.in_channels != self.out_channels) and not self.downsample:
            raise ValueError(
                f"downsample: expected True, since the input ({self.in_channels} channels) cannot be added to an "
                f"output of {self.out_channels} channels at stride {self.stride}"
            )


class Bottleneck(nn.Module):
    """1x1 squeeze, 3x3, 1x1 expand, each with BatchNorm, around a shortcut; (B, in, H, W) -> (B, out, H', W').

    `Parallel_AttentionBottleneck` of the post, whose `expand = 2` beside `expansion = 4` is `out_channels` here.
    """

    def __init__(self, config: BottleneckConfig) -> None:
        super().__init__()
        c = self.config = config
        self.conv1 = nn.Conv2d(c.in_channels, c.mid_channels, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(c.mid_channels, c.eps, c.momentum)
        self.conv2 = nn.Conv2d(c.mid_channels, c.mid_channels, 3, stride=c.stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(c.mid_channels, c.eps, c.momentum)
        self.conv3 = nn.Conv2d(c.mid_channels, c.out_channels, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(c.out_channels, c.eps, c.momentum)
        self.relu = nn.ReLU(inplace=True)
        self.ca = ChannelAttention(c.out_channels, c.reduction) if c.attention else None
        self.sa = SpatialAttention() if c.attention else None
        self.downsample = None
        if c.downsample:
            self.downsample = nn.Sequential(
                nn.Conv2d(c.in_channels, c.out_channels, kernel_size=1, stride=c.stride, bias=False),
                nn.BatchNorm2d(c.out_channels, c.eps, c.momentum),
            )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.config.in_channels:
            raise ValueError(f"x: expected (B, {self.config.in_channels}, H, W), got {tuple(x.shape)}")
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.ca is not None and self.sa is not None:
            out = self.ca(out) * out
            out = self.sa(out) * out
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)
