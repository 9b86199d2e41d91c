"""RoI pooling, RoIAlign and NMS beside torchvision's compiled operators, on the CPU: `python benchmarks/bench_ops.py`.

Results are checked equal first, RoI pooling bit for bit. Times are CPU times of one thread (torchvision's kernels use
one), so that other programs on the machine disturb them little; every round runs every candidate, and a ratio is the
median over rounds of torchvision's time by ours, so that 2.00 x means twice as fast as torchvision. The last column of
the RoI tables is the same ratio of elapsed times with as many threads as the machine has cores.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import torchvision
from torch import Tensor

from frcnn_lite.ops import box_iou, nms_mask, roi_align, roi_pool
from frcnn_lite.ops.roi_pool import compiled

# images, channels, height, width, regions; the targets are ratios of forward, and of forward and backward
ROI_SHAPES = (
    ((2, 512, 38, 50, 256), (5.0, 4.0)),
    ((1, 256, 50, 84, 1024), (1.0, 1.0)),
    ((2, 512, 37, 50, 128), (1.0, 1.0)),
    ((2, 512, 37, 50, 2000), (1.0, 1.0)),
    ((1, 64, 100, 100, 32), (1.0, 1.0)),
    ((4, 256, 13, 17, 512), (1.0, 1.0)),
    ((1, 1024, 7, 7, 64), (1.0, 1.0)),
    ((8, 64, 32, 32, 256), (1.0, 1.0)),  # the detector's own training step
)
SIDES = {"any": (0.0, 1.0), "small": (0.05, 0.2)}  # of a region, as a share of the map's
ALIGN_SHAPES = ((4, 64, 32, 32, 512), (4, 256, 32, 32, 512), (4, 256, 16, 16, 2048), (2, 256, 50, 84, 512))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    have = all(map(compiled, ("numba_roi_pool", "numba_roi_align")))
    kernels = "numba" if have else "torchvision and plain torch (numba is missing)"
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, kernels: {kernels}")

    columns = f"torchvision ms | ours ms | ratio (target) | with {os.cpu_count()} threads"
    print(f"\nRoI max pooling, 7 x 7 bins: images x channels x map, regions, sides | {columns}")
    for shape, targets in ROI_SHAPES:
        for sides in SIDES:
            bench_roi_pool(shape, sides, targets if sides == "any" else (None, None), rounds)
    print(f"\nRoIAlign, 7 x 7 bins, 2 x 2 points: images x channels x map, regions | {columns}")
    for shape in ALIGN_SHAPES:
        bench_roi_align(shape, rounds)
    print("\nNMS: images x boxes, how crowded, threshold | torchvision ms (a loop over images) | ours ms | ratio")
    for images, count, spread in ((8, 192, 100.0), (8, 1000, 100.0), (8, 1000, 1000.0), (2, 4000, 1000.0)):
        bench_nms(images, count, spread, rounds)


def roi_case(shape: tuple[int, ...], sides: str) -> tuple[str, Tensor, Tensor]:
    """A row's name, features, and regions whose corners are uniform over the map or whose sides are in a range."""
    images, channels, height, width, regions = shape
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(images, channels, height, width, generator=draw)
    size = torch.tensor([width, height])
    if sides == "any":
        corners = (torch.rand(regions, 2, 2, generator=draw) * size).sort(dim=1).values.flatten(1)
    else:
        low, high = SIDES[sides]
        side = (torch.rand(regions, 2, generator=draw) * (high - low) + low) * size
        corner = torch.rand(regions, 2, generator=draw) * (size - side)
        corners = torch.cat([corner, corner + side], dim=1)
    image = torch.randint(0, images, (regions, 1), generator=draw).float()
    name = f"{images} x {channels:4} x {height:3} x {width:3}, {regions:4}"
    return name, features, torch.cat([image, corners], dim=1)


def bench_roi_pool(shape: tuple[int, ...], sides: str, targets: tuple[float | None, float | None], rounds: int) -> None:
    """Forward for inference, forward and backward for training, and both on channels-last features."""
    name, features, rois = roi_case(shape, sides)
    theirs: Callable[[Tensor], Tensor] = partial(torchvision.ops.roi_pool, boxes=rois, output_size=7)
    ours: Callable[[Tensor], Tensor] = partial(roi_pool, rois=rois, output_size=7)
    check_equal(torch.ops.frcnn_lite.roi_pool(features, rois, 7, 7, 1.0), torch.ops.torchvision.roi_pool(
        features, rois, 1.0, 7, 7))  # fmt: skip
    last = features.contiguous(memory_format=torch.channels_last)
    for label, x, target in (
        ("forward", features, targets[0]),
        ("forward, backward", features.clone().requires_grad_(), targets[1]),
        ("the same, channels last", last.requires_grad_(), None),
    ):
        check_equal((ours(x),), (theirs(x),))
        their_step, our_step = (a_step(pool, x) for pool in (theirs, ours))
        if x.requires_grad:
            check_close(their_step(), our_step())
        report(f"{name}, {sides:5}, {label}", their_step, our_step, rounds, target, threads=True)


def bench_roi_align(shape: tuple[int, ...], rounds: int) -> None:
    """Forward for inference, forward and backward for training."""
    name, features, rois = roi_case(shape, "any")
    theirs: Callable[[Tensor], Tensor] = partial(torchvision.ops.roi_align, boxes=rois, output_size=7, sampling_ratio=2)
    ours: Callable[[Tensor], Tensor] = partial(roi_align, rois=rois, output_size=7, sampling_ratio=2)
    for label, x in (("forward", features), ("forward, backward", features.clone().requires_grad_())):
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-6, atol=1e-6)
        their_step, our_step = (a_step(align, x) for align in (theirs, ours))
        if x.requires_grad:
            check_close(their_step(), our_step())
        report(f"{name}, {label}", their_step, our_step, rounds, None, threads=True)


def a_step(pool: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], Tensor]:
    """Pool; where x requires it, also its gradient for a random gradient of the result."""
    if not x.requires_grad:
        return partial(pool, x)
    grad = torch.randn(pool(x).shape, generator=torch.Generator().manual_seed(1))

    def step() -> Tensor:
        return torch.autograd.grad(pool(x), x, grad)[0]

    return step


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
            return nms_mask(box_iou(boxes, boxes), scores, t)

        check_equal((ours(),), (theirs(),))
        kept = ours().sum().item() / images
        name = f"{images} x {count}, {kept:4.0f} kept an image, {threshold}"
        report(name, theirs, ours, rounds)


def check_equal(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    """Stop where the results differ in a single bit: a ratio of unequal results means nothing."""
    if not all(map(torch.equal, ours, theirs)):
        raise SystemExit("results differ from torchvision's; no ratio is printed")


def check_close(theirs: Tensor, ours: Tensor) -> None:
    """Gradients are sums in another order: stop where they differ by more than rounding."""
    if (ours - theirs).abs().max() > 2e-6 * theirs.abs().max():
        raise SystemExit("gradients differ from torchvision's; no ratio is printed")


def report(
    name: str,
    theirs: Callable[[], object],
    ours: Callable[[], object],
    rounds: int,
    target: float | None = None,
    threads: bool = False,
) -> None:
    """Time both in turn and print one row."""
    times = [(seconds(theirs), seconds(ours)) for _ in range(rounds)]
    medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
    wanted = "" if target is None else f"({target:g})"
    row = f"{name:75} | {medians[0]:8.2f} | {medians[1]:8.2f} | {ratio(times):5.2f} x {wanted:4}"
    if threads:
        torch.set_num_threads(os.cpu_count() or 1)
        ours()
        elapsed = [(seconds(theirs, time.perf_counter), seconds(ours, time.perf_counter)) for _ in range(rounds)]
        torch.set_num_threads(1)
        row += f" | {ratio(elapsed):5.2f} x"
    print(row, flush=True)


def ratio(times: list[tuple[float, float]]) -> float:
    """Median of their time by ours."""
    return statistics.median(their / our for their, our in times)


def seconds(function: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds a call takes; by default of this thread's CPU time."""
    start = clock()
    function()
    return clock() - start


if __name__ == "__main__":
    main()
