"""Faster R-CNN from end to end: backbone, proposals, box head."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from frcnn_lite.detection.backbone import Features, LiteBackbone
from frcnn_lite.detection.box_head import BoxHead
from frcnn_lite.detection.checks import check_batch
from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.lists import Target, detect_in_list, losses_of_list
from frcnn_lite.detection.losses import LossParts
from frcnn_lite.detection.mirrored import Regions, both_ways
from frcnn_lite.detection.postprocess import Detections, make_detections
from frcnn_lite.detection.proposal_targets import make_proposal_targets
from frcnn_lite.detection.proposals import Proposals, make_proposals
from frcnn_lite.detection.rpn import RegionProposalNetwork, RPNOutput
from frcnn_lite.detection.torchvision_backbone import TorchvisionBackbone


class FasterRCNN(nn.Module):
    """A detector whose loss parts for an image depend on that image alone: not on its batch, nor on its device.

    `model(images, boxes, labels, seeds)` gives `LossParts`, `model(images)` gives `Detections`; both go through
    `forward`, so that `nn.DataParallel` splits either. All shapes are static, and NMS alone reads a value back from the
    device: once a step, unless boxes suppress each other in long chains.

    Lists work, too, as with torchvision's detectors: `model([image, ...])` gives a list of dicts, and
    `model([image, ...], [target, ...])` a dict of losses. That form is for one device; `lists.py` describes it.
    """

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        self.config = config
        backbone = LiteBackbone(config) if config.backbone == "lite" else TorchvisionBackbone(config)
        self.backbone = backbone
        self.rpn = RegionProposalNetwork(config, backbone.rpn_channels, backbone.rpn_strides)
        self.box_head = BoxHead(config, backbone.roi_channels, backbone.roi_strides)

    def forward(
        self,
        images: Tensor | Sequence[Tensor],
        boxes: Tensor | Sequence[Target] | None = None,
        labels: Tensor | None = None,
        seeds: Tensor | None = None,
    ) -> LossParts | Detections | list[dict[str, Tensor]] | dict[str, Tensor]:
        """Losses when ground truth is given, detections otherwise (in `train()` and `eval()` mode alike).

        Args:
            images: (B, in_channels, H, W) float in 0..1; or a list of (in_channels, H, W), each of its own size.
            boxes: (B, M, 4) float `xyxy` pixels, padded; or beside a list of images, their targets.
            labels: (B, M) int64; -1 marks padding.
            seeds: (B,) int64, from which each image draws its samples: new ones every step, the same for every
                arrangement of devices.

        Raises:
            ValueError: only some of boxes, labels and seeds are given, their shapes do not fit together, or on the CPU,
                where nothing waits for it, pixels, labels or corners are out of range.
        """
        if not isinstance(images, Tensor):
            return self._call_with_lists(images, boxes, labels, seeds)
        if boxes is not None and not isinstance(boxes, Tensor):
            raise ValueError("`boxes` must be a tensor beside a batch; a list of targets goes with a list of images")
        check_batch(images, boxes, labels, seeds, self.config)
        if boxes is None or labels is None or seeds is None:
            return self._detect(images)
        features, rpn, proposals = self._propose(images)
        rpn_parts = self.rpn.losses(rpn, boxes, labels, seeds)
        targets = make_proposal_targets(proposals, boxes, labels, seeds, self.box_head.delta_weights, self.config)
        logits, deltas = self.box_head(features.roi, targets.rois)
        head_parts = self.box_head.losses(logits, deltas, targets)
        return LossParts(rpn_parts.sums | head_parts.sums, rpn_parts.counts | head_parts.counts)

    def _propose(self, images: Tensor) -> tuple[Features, RPNOutput, Proposals]:
        features = self.backbone(images)
        rpn = self.rpn(features.rpn)
        return features, rpn, make_proposals(rpn, self.rpn.delta_weights, _size(images), self.config)

    def _detect(self, images: Tensor) -> Detections:
        config, weights = self.config, self.box_head.delta_weights
        if not config.mirrored:
            return make_detections(*self._regions(images), weights, _size(images), config)
        config = replace(config, pre_nms_detections=2 * config.pre_nms_detections)
        return make_detections(*both_ways(self._regions, images), weights, _size(images), config)

    def _regions(self, images: Tensor) -> Regions:
        features, _, proposals = self._propose(images)
        logits, deltas = self.box_head(features.roi, proposals.boxes)
        return Regions(logits, deltas, proposals)

    def _call_with_lists(
        self, images: Sequence[Tensor], targets: Any, labels: Tensor | None, seeds: Tensor | None
    ) -> list[dict[str, Tensor]] | dict[str, Tensor]:
        if labels is not None or seeds is not None or isinstance(targets, Tensor):
            raise ValueError(
                "a list of images goes with a list of targets alone; `boxes`, `labels` and `seeds` with a batch"
            )
        if targets is None:
            return detect_in_list(self, images)
        return losses_of_list(self, images, targets, self.config.num_classes)


def _size(images: Tensor) -> tuple[int, int]:
    return images.shape[2], images.shape[3]
