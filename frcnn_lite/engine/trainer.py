"""One optimizer step, and everything that must be saved for the next one to come out the same."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from frcnn_lite.data import Augmentation, Batch, send
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine.averaging import Average
from frcnn_lite.engine.checkpoint import to_cpu
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.devices import main_device, spread
from frcnn_lite.engine.start import start_from
from frcnn_lite.ops import random_keys
from frcnn_lite.parallel import reduce_loss_over_ranks, rows_of_rank
from frcnn_lite.recipes import schedules

SEED_LIMIT = 2**31
HALF = {"cuda": torch.float16, "cpu": torch.bfloat16}  # which of the two formats each multiplies fast
VIEW_STREAM = 2  # 0 and 1 sample anchors and regions


def build_model(config: FasterRCNNConfig, seed: int) -> FasterRCNN:
    """A detector on the CPU whose initial weights depend on `seed` alone; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return FasterRCNN(config)


def build_optimizer(model: nn.Module, config: TrainConfig) -> tuple[Optimizer, LRScheduler]:
    """AdamW over `model` and the schedule of `config`; call `scheduler.step()` once after every optimizer step.

    Decay pulls weight matrices and filters only; biases and normalisation scales have nothing to gain from being small.
    I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019; "SGDR", ICLR 2017.
    """
    optimizer = AdamW(
        _groups(model, config),
        lr=config.lr,
        betas=(0.9, 0.99),  # a memory of 100 steps instead of 1000: these runs are short
    )
    # A run of five steps has no room for fifty of warm-up.
    warmup = min(config.warmup_steps, config.steps // 2)
    if config.schedule == "cosine":
        return optimizer, schedules.cosine(optimizer, max(config.steps, 1), warmup_steps=warmup)
    return optimizer, schedules.constant(optimizer, warmup_steps=warmup)


def _groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """With decay and without; where the backbone has a rate of its own, its two groups are the last."""
    rate = {True: config.lr * config.backbone_lr, False: config.lr}
    named = [(config.backbone_lr != 1 and name.startswith("backbone."), p) for name, p in model.named_parameters()]
    groups = []
    for slow in sorted({slow for slow, _ in named}):
        decayed, free = _by_dimension(parameter for of_backbone, parameter in named if of_backbone == slow)
        groups += [
            {"params": decayed, "lr": rate[slow], "weight_decay": config.weight_decay},
            {"params": free, "lr": rate[slow], "weight_decay": 0.0},
        ]
    return groups


def _by_dimension(parameters: Iterable[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in parameters:
        if parameter.requires_grad:
            (matrices if parameter.dim() > 1 else vectors).append(parameter)
    return matrices, vectors


class Trainer:
    """Model, optimizer, schedule and random numbers of one run.

    Attributes:
        model: the detector itself.
        net: the same detector as it is called, spread over `config.gpus` GPUs or over ranks.
        detector: the one to judge and to hand on, whose weights are the average of the last ones if the run keeps one.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.device = main_device(config.gpus)
        self.model = build_model(config.model, config.seed)
        self.net = spread(self.model, config.gpus)
        self.optimizer, self.scheduler = build_optimizer(self.model, config)
        # On the CPU, whatever trains: the numbers drawn must not depend on the kind or number of devices.
        self.generator = torch.Generator().manual_seed(config.seed)
        # float16 loses small gradients unless they are scaled up; bfloat16 has float32's range. Not enabled, it does
        # nothing. PyTorch's own 65536 to begin with runs over in the first step.
        self.scaler = torch.amp.GradScaler(
            self.device.type, init_scale=1024.0, enabled=config.amp and self.device.type == "cuda"
        )
        # Every rank keeps the average: they take the same steps, so it is the same everywhere.
        self.average = Average(self.model, config.ema) if config.ema else None
        self.detector = cast(FasterRCNN, self.average.module) if self.average else self.model
        self.model.train()

    def take_step(self, batch: Batch) -> dict[str, float]:
        """Forward, backward, update. Returns the losses by name, with their sum as "loss", and the learning rate "lr".

        On ranks, `batch` is the rank's share (`StepOrder` deals it out), and the losses are those of all ranks.

        Raises FloatingPointError, before any weight is changed, when the loss is not finite. The losses are the one
        thing that a step reads back from a GPU, beside NMS; with float16 the scaler reads whether a gradient ran over.
        """
        rate = self.optimizer.param_groups[0]["lr"]
        before = self.generator.get_state()
        # Drawn for all ranks' images on every rank: an image's seed does not depend on how many share the batch.
        seeds = torch.randint(SEED_LIMIT, (self.config.batch_size,), generator=self.generator)
        seeds = seeds[rows_of_rank(len(seeds))]
        batch = self.config.augmentation(batch, random_keys(seeds, Augmentation.DRAWS, VIEW_STREAM))
        images, boxes, labels, _ = batch.to(self.device)
        kind = self.device.type
        with torch.autocast(kind, HALF[kind], enabled=self.config.amp):  # DataParallel hands it on to its threads
            parts = self.net(images, boxes, labels, send(seeds, self.device))
        own, losses = reduce_loss_over_ranks(parts.sums, parts.counts)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(torch.stack(list(own.values())).sum()).backward()
        # Read once, and after the backward pass is under way, so that a GPU has work while this waits for it.
        every = torch.stack(list(losses.values()))
        loss, *values = torch.cat([every.sum().view(1), every]).tolist()
        if not math.isfinite(loss):
            self.generator.set_state(before)
            broken = " and ".join(name for name in ("images", "boxes") if not getattr(batch, name).isfinite().all())
            advice = f"the {broken} of the batch are not finite either" if broken else "try a lower lr"
            raise FloatingPointError(f"the loss is {loss} at learning rate {rate:.3g}; {advice}")
        self.scaler.unscale_(self.optimizer)
        clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        self.scaler.step(self.optimizer)  # leaves the weights alone where a scaled gradient ran over
        self.scaler.update()
        self.scheduler.step()
        if self.average:
            self.average.update_parameters(self.model)
        return {"loss": loss, **dict(zip(losses, values, strict=True)), "lr": rate}

    def start_from(self, weights: str | Path) -> str:
        """Before the first step: the weights of a file. Returns a line that says what was taken, see `start_from`."""
        taken = start_from(self.model, weights, self.config.class_names)
        if self.average:
            self.average.module.load_state_dict(self.model.state_dict())
        return taken

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs, as plain data and CPU tensors."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "generator": self.generator.get_state(),
        }
        if self.average:
            state["average"] = self.average.state_dict()
        if self.scaler.is_enabled():
            state["scaler"] = self.scaler.state_dict()
        return to_cpu(state)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`, on whatever devices this trainer has. Raises RuntimeError for another model's."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.generator.set_state(state["generator"])
        if self.average:
            self.average.load_state_dict(state["average"])
        if "scaler" in state:
            self.scaler.load_state_dict(state["scaler"])
