"""A small convolutional backbone, trained from scratch.

GroupNorm (Wu and He, 2018) instead of BatchNorm: an image's features then depend on that image alone, so that a batch
split over devices computes what the whole batch would.
"""

import torch
from torch import Tensor, nn

from frcnn_lite.detection.config import FasterRCNNConfig


def conv_norm(in_channels: int, out_channels: int, stride: int, group_width: int) -> nn.Sequential:
    """3 x 3 convolution and GroupNorm."""
    conv = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.GroupNorm(out_channels // group_width, out_channels))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions around a shortcut (He et al., "Deep residual learning", 2016)."""

    def __init__(self, channels: int, group_width: int) -> None:
        super().__init__()
        self.first = conv_norm(channels, channels, 1, group_width)
        self.second = conv_norm(channels, channels, 1, group_width)
        # The block starts as the identity, which lets the first steps of training reach every layer.
        nn.init.zeros_(self.second[1].weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Backbone(nn.Module):
    """Images (N, in_channels, H, W) in 0..1 to features (N, widths[-1], H / stride, W / stride), sizes rounded up."""

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        self.mean, self.std = config.pixel_mean, config.pixel_std
        layers: list[nn.Module] = []
        channels = config.in_channels
        for width, blocks in zip(config.widths, config.blocks, strict=True):
            layers += [conv_norm(channels, width, 2, config.group_width), nn.ReLU(inplace=True)]
            layers += [ResidualBlock(width, config.group_width) for _ in range(blocks)]
            channels = width
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """See the class."""
        return self.layers((images - self.mean) / self.std)
