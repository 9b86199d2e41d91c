"""RoI pooling and NMS beside torchvision's compiled operators, on the CPU: `python benchmarks/bench_ops.py`.

Results are checked equal first. Times are CPU times of one thread (torchvision's kernels use one), so that other
programs on the machine disturb them little; every round runs every candidate, and a ratio is the median over rounds of
torchvision's time by ours, so that 2.00 x means twice as fast as torchvision.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torchvision
from torch import Tensor

from frcnn_lite.ops import nms_mask, roi_pool
from frcnn_lite.ops.kernels import compiled


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    kernels = "numba" if compiled("nms") and compiled("roi_pool") else "plain torch (numba is missing)"
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, one thread, kernels: {kernels}")

    print("\nRoI pooling: images x channels x map, regions, sides, bins | torchvision ms | ours ms | ratio")
    for name, features, rois, bins in roi_cases():
        bench_roi_pool(name, features, rois, bins, rounds)
    print("\nNMS: images x boxes, how crowded, threshold | torchvision ms (a loop over images) | ours ms | ratio")
    for images, count, spread in ((8, 192, 100.0), (8, 1000, 100.0), (8, 1000, 1000.0), (2, 4000, 1000.0)):
        bench_nms(images, count, spread, rounds)


def roi_cases() -> list[tuple[str, Tensor, Tensor, int]]:
    """The detector's own training step, then shapes of Fast R-CNN's and of a large batch of regions."""
    cases = []
    for images, channels, height, width, regions, sides, bins in (
        (8, 64, 32, 32, 256, (5, 12), 6),
        (8, 96, 16, 16, 256, (2, 6), 7),
        (1, 512, 37, 50, 128, (2, 8), 7),
        (1, 512, 37, 50, 128, (12, 31), 7),
        (1, 512, 37, 50, 1024, (12, 31), 7),
        (2, 256, 50, 84, 1024, (2, 8), 7),
    ):
        generator = torch.Generator().manual_seed(0)
        features = torch.randn(images, channels, height, width, generator=generator)
        side = torch.rand(regions, 2, generator=generator) * (sides[1] - sides[0]) + sides[0]
        corner = torch.rand(regions, 2, generator=generator) * (torch.tensor([width, height]) - side).clamp(min=0)
        image = torch.randint(0, images, (regions, 1), generator=generator).float()
        name = (
            f"{images} x {channels} x {height} x {width}, {regions:4}, {sides[0]:2}-{sides[1]:2} cells, {bins} x {bins}"
        )
        cases.append((name, features, torch.cat([image, corner, corner + side], dim=1), bins))
    return cases


def bench_roi_pool(name: str, features: Tensor, rois: Tensor, bins: int, rounds: int) -> None:
    """Forward alone, forward and backward, and both on channels-last features."""

    def ours(x: Tensor) -> Tensor:
        return roi_pool(x, rois, bins)

    def theirs(x: Tensor) -> Tensor:
        return torchvision.ops.roi_pool(x, rois, bins)

    for label, layout, backward in (
        ("forward", torch.contiguous_format, False),
        ("forward, backward", torch.contiguous_format, True),
        ("the same, channels last", torch.channels_last, True),
    ):
        x = features.contiguous(memory_format=layout).requires_grad_(backward)
        grad = torch.ones_like(ours(x))
        check_equal(ours(x), theirs(x))
        if backward:
            torch.testing.assert_close(*(torch.autograd.grad(f(x), x, grad)[0] for f in (ours, theirs)))

        def run(
            pool: Callable[[Tensor], Tensor], x: Tensor = x, grad: Tensor = grad, backward: bool = backward
        ) -> None:
            pooled = pool(x)
            if backward:
                torch.autograd.grad(pooled, x, grad)

        report(f"{name}, {label}", lambda: run(theirs), lambda: run(ours), rounds)


def bench_nms(images: int, count: int, spread: float, rounds: int) -> None:
    """One batch; torchvision takes an image at a time."""
    generator = torch.Generator().manual_seed(0)
    corner = torch.rand(images, count, 2, generator=generator) * spread
    boxes = torch.cat([corner, corner + torch.rand(images, count, 2, generator=generator) * 40 + 10], dim=-1)
    scores = torch.rand(images, count, generator=generator)
    for threshold in (0.5, 0.7):

        def theirs(t: float = threshold) -> Tensor:
            mask = torch.zeros(images, count, dtype=torch.bool)
            for image in range(images):
                mask[image, torchvision.ops.nms(boxes[image], scores[image], t)] = True
            return mask

        def ours(t: float = threshold) -> Tensor:
            return nms_mask(boxes, scores, t)

        check_equal(ours(), theirs())
        kept = ours().sum().item() / images
        name = f"{images} x {count}, {kept:4.0f} kept an image, {threshold}"
        report(name, theirs, ours, rounds)


def check_equal(ours: Tensor, theirs: Tensor) -> None:
    """Stop where the results differ in a single bit: a ratio of unequal results means nothing."""
    if not torch.equal(ours, theirs):
        raise SystemExit("results differ from torchvision's; no ratio is printed")


def report(name: str, theirs: Callable[[], object], ours: Callable[[], object], rounds: int) -> None:
    """Time both in turn and print one row."""
    times = [(cpu_time(theirs), cpu_time(ours)) for _ in range(rounds)]
    medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
    ratio = statistics.median(their / our for their, our in times)
    print(f"{name:75} | {medians[0]:8.2f} | {medians[1]:8.2f} | {ratio:5.2f} x", flush=True)


def cpu_time(function: Callable[[], object]) -> float:
    """Seconds of this thread's CPU time."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
