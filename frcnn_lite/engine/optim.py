"""Optimizer and learning-rate schedule of a training run."""

from collections.abc import Iterable

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from frcnn_lite.engine import schedules
from frcnn_lite.engine.config import TrainConfig


def build_optimizer(model: nn.Module, config: TrainConfig) -> tuple[Optimizer, LRScheduler]:
    """AdamW over `model` and the schedule of `config`; call `scheduler.step()` once after every optimizer step.

    Decay pulls weight matrices and filters only; biases and normalisation scales have nothing to gain from being small.
    I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019; "SGDR", ICLR 2017.
    """
    decayed, free = _by_dimension(model.parameters())
    optimizer = AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": free, "weight_decay": 0.0}],
        lr=config.lr,
        betas=(0.9, 0.99),  # a memory of 100 steps instead of 1000: these runs are short
    )
    # A run of five steps has no room for fifty of warm-up.
    warmup = min(config.warmup_steps, config.steps // 2)
    if config.schedule == "cosine":
        return optimizer, schedules.cosine(optimizer, max(config.steps, 1), warmup_steps=warmup)
    return optimizer, schedules.constant(optimizer, warmup_steps=warmup)


def _by_dimension(parameters: Iterable[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in parameters:
        if parameter.requires_grad:
            (matrices if parameter.dim() > 1 else vectors).append(parameter)
    return matrices, vectors
