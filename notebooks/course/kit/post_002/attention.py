"""Channel and spatial attention, for one group or for many at once, and the bottleneck that ends in both.

Source: S. Woo, J. Park, J.-Y. Lee, I. S. Kweon, "CBAM: Convolutional Block Attention Module", ECCV 2018. The post
names both layers and leaves them commented out. With `groups=1` these are the paper's modules; with
`groups=G` the channels come in G equal blocks, and each block attends to itself alone.
"""

import torch
from torch import Tensor, nn

from course.kit.post_002.bottleneck import Bottleneck, BottleneckConfig


class ChannelAttention(nn.Module):
    """One factor in 0..1 a channel, from the channel's mean and maximum: (B, G * C, H, W) -> (B, G * C, 1, 1)."""

    def __init__(self, channels: int, reduction: int = 16, groups: int = 1) -> None:
        super().__init__()
        if not 1 <= reduction <= channels:
            raise ValueError(f"`reduction` must be 1..{channels}, got {reduction}")
        hidden = channels // reduction
        self.fc1 = nn.Conv2d(groups * channels, groups * hidden, kernel_size=1, bias=False, groups=groups)
        self.relu = nn.ReLU()
        self.fc2 = nn.Conv2d(groups * hidden, groups * channels, kernel_size=1, bias=False, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        mean, peak = x.mean(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
        return torch.sigmoid(self._mlp(mean) + self._mlp(peak))

    def _mlp(self, pooled: Tensor) -> Tensor:
        return self.fc2(self.relu(self.fc1(pooled)))


class SpatialAttention(nn.Module):
    """One factor in 0..1 a pixel and group, from mean and maximum over the group's channels.

    (B, G * C, H, W) -> (B, G * C, H, W), a view in which the channels of a group share their factor.
    """

    def __init__(self, kernel_size: int = 7, groups: int = 1) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"`kernel_size` must be odd, which keeps the size, got {kernel_size}")
        self.groups = groups
        self.conv = nn.Conv2d(2 * groups, groups, kernel_size, padding=kernel_size // 2, bias=False, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        grouped = x.unflatten(1, (self.groups, -1))
        # mean and maximum of a group lie side by side: a grouped convolution takes neighbouring channels
        maps = torch.stack([grouped.mean(dim=2), grouped.amax(dim=2)], dim=2).flatten(1, 2)
        factors = torch.sigmoid(self.conv(maps)).unsqueeze(2)
        return factors.expand_as(grouped).flatten(1, 2)


class AttentionBottleneck(Bottleneck):
    """A `Bottleneck` whose branch passes channel, then spatial attention, before the shortcut is added."""

    def __init__(
        self, config: BottleneckConfig, groups: int = 1, shared_input: bool = True, reduction: int = 16
    ) -> None:
        super().__init__(config, groups, shared_input)
        self.ca = ChannelAttention(config.out_channels, reduction, groups)
        self.sa = SpatialAttention(groups=groups)

    def branch(self, x: Tensor) -> Tensor:
        out = super().branch(x)
        out = self.ca(out) * out
        return self.sa(out) * out
