"""A small convolutional backbone, trained from scratch.

GroupNorm (Wu and He, 2018) instead of BatchNorm: an image's features then depend on that image alone, so that a batch
split over devices computes what the whole batch would.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
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


class Features(NamedTuple):
    """Maps (N, C, H / stride, W / stride), sizes rounded up: those `rpn` looks at, and those `roi` regions are pooled
    from; finest first where there are several."""

    rpn: tuple[Tensor, ...]
    roi: tuple[Tensor, ...]


class PixelNorm(nn.Module):
    """Images in 0..1, shifted and scaled by `pixel_mean` and `pixel_std`, with channels innermost: the layout that
    convolutions and RoI pooling compute in (a tenth of a step on a CPU)."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        for name in ("mean", "std"):
            value = getattr(config, f"pixel_{name}")
            of_channels = torch.tensor(value if isinstance(value, tuple) else (value,))
            self.register_buffer(name, of_channels.view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        return (images.contiguous(memory_format=torch.channels_last) - self.mean) / self.std


class LiteBackbone(nn.Module):
    """Images (N, in_channels, H, W) in 0..1 to `Features`.

    The fine map is the last but one stage with the last one added from above: one step of a feature pyramid (Lin et
    al., 2017). RoI pooling rounds a region to whole cells, so cells half as wide place its boxes more exactly.
    """

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        self.normalize = PixelNorm(config)
        self.rpn_strides, self.roi_strides = (2 ** len(config.widths),), (2 ** (len(config.widths) - 1),)
        self.rpn_channels, self.roi_channels = config.widths[-1], config.roi_channels
        widths = (config.in_channels, *config.widths)
        self.stages = nn.ModuleList(
            _stage(widths[i], widths[i + 1], blocks, config.group_width) for i, blocks in enumerate(config.blocks)
        )
        self.lateral = nn.Conv2d(widths[-2], config.roi_channels, 1, bias=False)
        self.top_down = nn.Conv2d(widths[-1], config.roi_channels, 1, bias=False)
        self.norm = nn.GroupNorm(config.roi_channels // config.group_width, config.roi_channels)

    def forward(self, images: Tensor) -> Features:
        """See the class."""
        fine = coarse = self.normalize(images)
        for stage in self.stages:
            fine, coarse = coarse, stage(coarse)
        from_above = F.interpolate(self.top_down(coarse), size=fine.shape[-2:], mode="nearest")
        return Features((coarse,), (torch.relu(self.norm(self.lateral(fine) + from_above)),))


def _stage(in_channels: int, out_channels: int, blocks: int, group_width: int) -> nn.Sequential:
    """Halve the resolution, then `blocks` residual blocks."""
    residual = [ResidualBlock(out_channels, group_width) for _ in range(blocks)]
    return nn.Sequential(conv_norm(in_channels, out_channels, 2, group_width), nn.ReLU(inplace=True), *residual)
