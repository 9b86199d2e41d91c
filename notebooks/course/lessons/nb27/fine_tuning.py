"""What notebook 27 fine-tunes: a trained detector, twelve batches of scenes, and its losses on several GPUs."""

from functools import cache

import torch
from torch import Tensor, nn

from course.kit.files import CHECKPOINTS
from frcnn_lite import data, engine, parallel

PICTURES, BATCHES, SIDE = 6, 12, 96


@cache
def batches() -> list[data.Batch]:
    """Twelve batches of six scenes, the same ones in every run."""
    scenes = data.DigitScenes("train", PICTURES * BATCHES, size=SIDE)
    return [data.collate([scenes[PICTURES * k + i] for i in range(PICTURES)]) for k in range(BATCHES)]


def with_new_head() -> nn.Module:
    """The trained detector of this series with a box head of random weights, in training mode on the CPU."""
    model = engine.load_weights(CHECKPOINTS / "digits.pt")
    fresh = engine.build_model(model.config, seed=1)
    model.box_head.load_state_dict(fresh.box_head.state_dict())
    return model.train()


def losses_of(net: nn.Module, step: int) -> dict[str, Tensor]:
    """The four losses of batch number `step`, over all GPUs of `net`; what is drawn depends on the step alone."""
    batch = batches()[step]
    if not isinstance(net, nn.DataParallel):
        batch = batch.to(next(net.parameters()).device)
    seeds = torch.arange(PICTURES, device=batch.images.device) + PICTURES * step
    parts = net(batch.images, batch.boxes, batch.labels, seeds)
    return parallel.reduce_loss(parts.sums, parts.counts)
