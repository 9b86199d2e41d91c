"""A training step beside torchvision's Faster R-CNN, on the CPU: `python benchmarks/bench_detector.py`.

The same backbone, weights, images, anchors and sample counts, both with RoIAlign. First the losses are compared with
sampling disabled (torchvision samples from the global generator, so its samples cannot be ours); then forward and
backward are timed in turn, and a ratio is the median over rounds of torchvision's time by ours: 1.50 x means that ours
takes two thirds. Calls are counted below autograd, in forward and backward, also of the backbone alone, which is the
same in both. How often a step waits for the device is counted on a virtual GPU, and so is memory: the peak, weights
included. On a real GPU it is bench_cuda.py that measures.
"""

import argparse
import copy
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torchvision.models.detection import FasterRCNN as TorchvisionFasterRCNN
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision_weights import from_torchvision, torchvision_config

import vgpu
from frcnn_lite.detection import FasterRCNN
from frcnn_lite.parallel import reduce_loss

BACKBONE, CLASSES, SIDE, STRIDE = "resnet18", 10, 160, 16
SIZES, RATIOS = (16.0, 32.0, 64.0, 128.0), (0.5, 1.0, 2.0)


def main() -> None:
    """Check, then print time, calls and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"torch {torch.__version__}, {BACKBONE} to stride {STRIDE}, {SIDE} x {SIDE} pixels, {options.threads} threads"
    )
    check_losses()
    for batch in (2, 4):
        theirs, ours = steps(batch, *models())
        for step in (theirs, ours):
            step()
        times = [(seconds(theirs), seconds(ours)) for _ in range(options.rounds)]
        ratio = statistics.median(a / b for a, b in times)
        a, b = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        print(f"B={batch}: torchvision {a:.0f} ms, ours {b:.0f} ms, {ratio:.2f} x")
    for batch in (2, 4, 8):
        theirs, ours = models()
        a, b = (count(step) for step in steps(batch, theirs, ours))
        shared = count(backbone_step(batch, ours))
        with vgpu.virtual_gpus(1, force=True):
            on_gpu = steps(batch, theirs.to("cuda:0"), ours.to("cuda:0"), device="cuda:0")
            a_waits, b_waits = (count_waits(step) for step in on_gpu)
        print(
            f"B={batch}: torchvision {a} calls, {a_waits} waits; ours {b} calls, {b_waits} waits, {b / a:.2f} of them; "
            f"without the {shared} of the backbone {(b - shared) / (a - shared):.2f}"
        )
    a, b = (peak_memory(which, batch=4) for which in (0, 1))
    print(f"B=4: peak memory of torchvision {a / 2**20:.0f} MiB, ours {b / 2**20:.0f} MiB, {a / b:.2f} x")


def models(**changes: Any) -> tuple[nn.Module, FasterRCNN]:
    """Torchvision's and ours with the same weights, in training mode; with changes to our configuration, torchvision's
    takes every candidate as a sample."""
    torch.manual_seed(0)
    config = torchvision_config(
        CLASSES,
        backbone=BACKBONE,
        fpn=False,
        norm="group",
        anchor_sizes=SIZES,
        pre_nms_proposals=500,
        **{"proposals": 300, "roi_samples": 128, **changes},
    )
    ours = FasterRCNN(config)
    backbone = copy.deepcopy(ours.backbone.maps)
    backbone.out_channels = ours.backbone.roi_channels
    theirs = TorchvisionFasterRCNN(
        *(backbone, CLASSES + 1),
        rpn_anchor_generator=AnchorGenerator((SIZES,), (RATIOS,)),
        min_size=SIDE,
        max_size=SIDE,
        rpn_pre_nms_top_n_train=500,
        rpn_post_nms_top_n_train=300,
        box_batch_size_per_image=128,
    )
    # Scores that are nearly equal, as fresh ones are, would leave the choice of proposals to rounding.
    nn.init.normal_(theirs.rpn.head.cls_logits.weight, std=0.5)
    if changes:
        theirs.rpn.fg_bg_sampler.batch_size_per_image = theirs.roi_heads.fg_bg_sampler.batch_size_per_image = 10**6
        theirs.rpn.fg_bg_sampler.positive_fraction = theirs.roi_heads.fg_bg_sampler.positive_fraction = 1.0
    ours.load_state_dict(from_torchvision(theirs.state_dict()))
    return theirs.train(), ours.train()


def pictures(batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Noise, with six boxes a picture."""
    generator = torch.Generator().manual_seed(batch)
    corner = torch.rand(batch, 6, 2, generator=generator) * SIDE * 0.6
    side = 12 + torch.rand(batch, 6, 2, generator=generator) * SIDE * 0.3
    labels = torch.randint(CLASSES, (batch, 6), generator=generator)
    return torch.rand(batch, 3, SIDE, SIDE, generator=generator), torch.cat([corner, corner + side], dim=2), labels


def losses_of(
    theirs: nn.Module, ours: nn.Module, batch: int, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> tuple[Callable, Callable]:
    """Two functions that give the four losses, in the same order."""
    images, boxes, labels = pictures(batch)
    images, boxes, labels = images.to(device, dtype), boxes.to(device, dtype), labels.to(device)
    targets = [{"boxes": boxes[k], "labels": labels[k] + 1} for k in range(batch)]
    seeds = torch.arange(batch).to(device)
    names = ("loss_objectness", "loss_rpn_box_reg", "loss_classifier", "loss_box_reg")

    def torchvision() -> list[Tensor]:
        losses = theirs(list(images), targets)
        return [losses[name] for name in names]

    return torchvision, lambda: list(reduce_loss(*ours(images, boxes, labels, seeds)).values())


def steps(batch: int, theirs: nn.Module, ours: nn.Module, device: str = "cpu") -> list[Callable[[], None]]:
    """Forward and backward of both."""

    def step(losses: Callable[[], list[Tensor]], model: nn.Module) -> None:
        model.zero_grad()
        torch.stack(losses()).sum().backward()

    pairs = zip(losses_of(theirs, ours, batch, device), (theirs, ours), strict=True)
    return [lambda losses=losses, model=model: step(losses, model) for losses, model in pairs]


def backbone_step(batch: int, ours: FasterRCNN) -> Callable[[], None]:
    """Forward and backward of what the two have in common."""
    images = pictures(batch)[0]

    def step() -> None:
        ours.zero_grad()
        features = ours.backbone.maps(images)
        features.backward(features)

    return step


def check_losses(device: str = "cpu") -> None:
    """With every anchor and proposal sampled, both give the same losses; in float64, for the same reason."""
    anchors = (SIDE // STRIDE) ** 2 * len(SIZES) * len(RATIOS)
    theirs, ours = models(rpn_samples=anchors, rpn_positive_fraction=1.0, roi_samples=306, roi_positive_fraction=1.0)
    theirs, ours = (model.to(device, torch.float64) for model in (theirs, ours))
    both = losses_of(theirs, ours, batch=2, device=device, dtype=torch.float64)
    values = [torch.stack(losses()) for losses in both]
    torch.testing.assert_close(values[1], values[0], rtol=1e-6, atol=1e-9)
    print("losses without sampling are equal to 1e-6:", " ".join(f"{value:.4f}" for value in values[1].tolist()))


def seconds(step: Callable[[], None]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


class Counter(TorchDispatchMode):
    """Calls of operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def count(step: Callable[[], None]) -> int:
    """Calls of one step, forward and backward."""
    with Counter() as counter:
        step()
    return counter.calls


def count_waits(step: Callable[[], None]) -> int:
    """How often a step on a GPU, virtual or real, waits for it: also in a copy to it that nobody has pinned."""
    step()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode(1)
        step()
        torch.cuda.set_sync_debug_mode(0)
    return sum("called a synchronizing" in str(one.message) for one in heard)


def peak_memory(which: int, batch: int) -> int:
    """Bytes on a virtual GPU, at most, in one step of torchvision's (0) or ours (1)."""
    with vgpu.virtual_gpus(1, force=True):
        pair = models()
        step = steps(batch, *(model.to("cuda:0") for model in pair), device="cuda:0")[which]
        pair[1 - which].to("cpu")
        step()
        torch.cuda.reset_peak_memory_stats(0)
        step()
        return torch.cuda.max_memory_allocated(0)


if __name__ == "__main__":
    main()
