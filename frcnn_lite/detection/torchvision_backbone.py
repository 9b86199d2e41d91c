"""ResNets and MobileNets of torchvision as backbones, alone or under a feature pyramid (Lin et al., 2017)."""

import itertools
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn

from frcnn_lite.detection.backbone import Features, PixelNorm
from frcnn_lite.detection.config import FasterRCNNConfig

PROBE = 128
"""Side in pixels of the picture that is sent through once to learn the strides."""


class TorchvisionBackbone(nn.Module):
    """Images (N, 3, H, W) in 0..1 to `Features`; below `maps`, every weight has its name in torchvision.

    With `config.fpn`, regions are pooled from every level but the coarsest, which only the RPN looks at. Without, both
    use one map: of stride 16 in a ResNet (conv4, as in He et al., 2016), of stride 32 in a MobileNet.
    Raises ValueError for a name that torchvision does not have, ModuleNotFoundError without torchvision.
    """

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        self.normalize = PixelNorm(config)
        self.maps = _maps(config)
        with torch.no_grad():
            maps = self._run(torch.zeros(1, config.in_channels, PROBE, PROBE))
        self.rpn_strides = tuple(PROBE // one.shape[-1] for one in maps)
        self.roi_strides = self.rpn_strides[:-1] if config.fpn else self.rpn_strides
        self.rpn_channels = self.roi_channels = maps[-1].shape[1]

    def forward(self, images: Tensor) -> Features:
        """See the class."""
        maps = self._run(self.normalize(images))
        return Features(maps, maps[: len(self.roi_strides)])

    def _run(self, images: Tensor) -> tuple[Tensor, ...]:
        maps = self.maps(images)
        return tuple(maps.values()) if isinstance(maps, dict) else (maps,)


def _maps(config: FasterRCNNConfig) -> nn.Module:
    """A module from images to its map, or to a dict of them, with every layer trainable."""
    from torchvision.models import get_model
    from torchvision.models.detection.backbone_utils import mobilenet_backbone, resnet_fpn_backbone

    name, norm = config.backbone, _norm_layer(config)
    if name.startswith("mobilenet"):
        return mobilenet_backbone(backbone_name=name, weights=None, fpn=config.fpn, norm_layer=norm, trainable_layers=6)
    if not name.startswith("resnet"):
        raise ValueError(f'`backbone` must be "lite", or a ResNet or MobileNet of torchvision, got {name!r}')
    if config.fpn:
        return resnet_fpn_backbone(backbone_name=name, weights=None, norm_layer=norm, trainable_layers=5)
    children = get_model(name, weights=None, norm_layer=norm).named_children()
    return nn.Sequential(OrderedDict(itertools.takewhile(lambda child: child[0] != "layer4", children)))


def _norm_layer(config: FasterRCNNConfig) -> Any:
    """A builder of a normalisation layer for a number of channels. BatchNorm that learns is not among the choices: a
    batch of two pictures has next to no statistics, and a batch split over devices would have others."""
    from torchvision.ops import FrozenBatchNorm2d

    if config.norm == "frozen":
        return FrozenBatchNorm2d
    return lambda channels, **_: nn.GroupNorm(max(1, channels // config.group_width), channels)
