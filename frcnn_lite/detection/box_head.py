"""The box head: class scores and refined deltas for regions of interest (Girshick, "Fast R-CNN", 2015)."""

import torch
from torch import Tensor, nn

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.losses import LossParts, box_sum, classification_sum
from frcnn_lite.detection.proposal_targets import ProposalTargets
from frcnn_lite.ops import roi_pool


class BoxHead(nn.Module):
    """Pools each region to a small grid, then two fully connected layers.

    The deltas are class-agnostic, four per region rather than four per class (as in R-FCN, Dai et al., 2016).
    """

    delta_weights: Tensor

    def __init__(self, config: FasterRCNNConfig) -> None:
        super().__init__()
        self.config = config
        pooled = config.roi_channels * config.roi_output_size**2
        self.hidden = nn.Linear(pooled, config.head_width)
        self.classify = nn.Linear(config.head_width, config.num_classes + 1)
        self.regress = nn.Linear(config.head_width, 4)
        nn.init.kaiming_normal_(self.hidden.weight, nonlinearity="relu")
        nn.init.normal_(self.classify.weight, std=0.01)
        nn.init.normal_(self.regress.weight, std=0.001)
        for layer in (self.hidden, self.classify, self.regress):
            nn.init.zeros_(layer.bias)
        self.register_buffer("delta_weights", torch.tensor(config.roi_delta_weights), persistent=False)

    def forward(self, features: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, C, h, w) and rois (B, S, 4) to class logits (B, S, num_classes + 1) and deltas (B, S, 4)."""
        batch, count = rois.shape[:2]
        # The image index counts within this batch: on a replica, image 0 is the first of *its* chunk.
        image = torch.arange(batch, device=rois.device, dtype=rois.dtype).view(-1, 1, 1).expand(-1, count, 1)
        indexed = torch.cat([image, rois], dim=2).flatten(0, 1)
        pooled = roi_pool(features, indexed, self.config.roi_output_size, 1 / self.config.roi_stride)
        hidden = torch.relu(self.hidden(pooled.flatten(1)))
        return self.classify(hidden).view(batch, count, -1), self.regress(hidden).view(batch, count, 4)

    def losses(self, logits: Tensor, deltas: Tensor, targets: ProposalTargets) -> LossParts:
        """Class and box losses of the sampled regions; both are counted by the number of regions."""
        count = targets.weights.sum(dim=1)
        return LossParts(
            sums={
                "head_class": classification_sum(logits, targets.labels, targets.weights),
                "head_box": box_sum(deltas, targets.deltas, targets.box_weights, self.config.smooth_l1_beta),
            },
            counts={"head_class": count, "head_box": count},
        )
