"""What virtual GPUs cost, beside plain CPU tensors and beside PyTorch's own FakeTensorMode, in one run.

    python benchmarks/bench_vgpu.py

Ratios only mean something within one run on one machine. Results are checked to be equal before anything is timed;
FakeTensorMode computes no values, so only its shapes and devices are checked.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

import vgpu
from frcnn_lite.data import DigitScenes, collate
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig, LossParts
from frcnn_lite.parallel import data_parallel, reduce_loss

Step = Callable[[], torch.Tensor]


def microseconds(step: Step, seconds: float = 0.4) -> float:
    """Best mean of five rounds, in processor time, so that a busy machine disturbs little."""
    step()
    started = time.process_time()
    step()
    repeats = max(1, int(seconds / 5 / max(time.process_time() - started, 1e-6)))
    rounds = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(repeats):
            step()
        rounds.append((time.process_time() - started) / repeats)
    return min(rounds) * 1e6


def small_add(device: str) -> Step:
    x, y = torch.arange(8.0).to(device), torch.arange(8.0).to(device)
    return lambda: x + y


def small_view(device: str) -> Step:
    x = torch.arange(8.0).to(device)
    return lambda: x[:2]


def factory(device: str) -> Step:
    return lambda: torch.zeros(8, device=device)


def small_backward(device: str) -> Step:
    x = torch.arange(8.0).to(device).requires_grad_()

    def step() -> torch.Tensor:
        (grad,) = torch.autograd.grad((x * x).sum(), x)
        return grad

    return step


def convolutions(device: str) -> Step:
    """Forward and backward of a small image network, the load of the notebooks."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 32 * 32, 10))
    if device != "cpu":  # FakeTensorMode cannot even move a module to where it is
        net.to(device)
    images = torch.linspace(-1, 1, 4 * 3 * 64 * 64).view(4, 3, 64, 64).to(device)

    def step() -> torch.Tensor:
        net.zero_grad()
        net(images).square().mean().backward()
        return net[0].weight.grad

    return step


def two_devices() -> tuple[Step, Step]:
    """nn.DataParallel on two virtual GPUs, and the same two halves one after the other on the CPU."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
    images = torch.linspace(-1, 1, 8 * 3 * 64 * 64).view(8, 3, 64, 64)
    parallel, plain = nn.DataParallel(copy.deepcopy(net).cuda(), [0, 1]), net

    def step() -> torch.Tensor:
        parallel.zero_grad()
        parallel(images).square().mean().backward()
        return parallel.module[0].weight.grad

    def halves() -> torch.Tensor:
        plain.zero_grad()
        torch.cat([plain(half) for half in images.chunk(2)]).square().mean().backward()
        return plain[0].weight.grad

    return step, halves


def detector(spread: Callable[[nn.Module], Callable[..., LossParts]], gpu: bool = False) -> tuple[nn.Module, Step]:
    """Faster R-CNN lite and its training step on eight pictures, called as `spread` makes of it."""
    torch.manual_seed(0)
    model = FasterRCNN(FasterRCNNConfig()).train()
    scenes = DigitScenes("train", 8, seed=0)
    pictures = collate([scenes[i] for i in range(8)])
    given = (*pictures[:3], torch.arange(8))
    if gpu:
        model, given = model.cuda(), tuple(tensor.cuda() for tensor in given)
    net = spread(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)  # every step is the same

    def step() -> torch.Tensor:
        parts = net(*given)
        loss = torch.stack(list(reduce_loss(parts.sums, parts.counts).values())).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        return loss

    return model, step


def in_turn(model: nn.Module) -> Callable[..., LossParts]:
    """The halves of the batch one after the other: the arithmetic, and nothing of what spreading it costs."""

    def halves(*given: torch.Tensor) -> LossParts:
        parts = [model(*half) for half in zip(*(tensor.chunk(2) for tensor in given), strict=True)]
        return tree_map(lambda one, other: torch.cat([one, other]), *parts)

    return halves


def in_threads(model: nn.Module) -> Callable[..., LossParts]:
    """The halves in two threads. On one device replicas share their weights: nothing is copied or added up."""
    return lambda *given: data_parallel(model, given, ["cpu", "cpu"])


def on_two_gpus(model: nn.Module) -> Callable[..., LossParts]:
    return nn.DataParallel(model, [0, 1])


def detector_times(rounds: int = 15) -> tuple[list[float], list[float]]:
    """Median milliseconds of a training step: halves in turn on the CPU, in two threads there, on two virtual GPUs, in
    FakeTensorMode; and the third by the first and by the second, medians over rounds.

    In every round virtual GPUs are off for the CPU and on for themselves, so that a busy machine slows all. Each takes
    one step before the one that counts, which would otherwise find cold what switching them has changed.
    """
    plain_model, plain = detector(in_turn)
    _, threads = detector(in_threads)
    with vgpu.virtual_gpus(2, force=True):
        model, virtual = detector(on_two_gpus, gpu=True)
        found = [virtual(), *(p.grad for p in model.parameters())]
        for expected, one in zip([plain(), *(p.grad for p in plain_model.parameters())], found, strict=True):
            check_equal(expected.detach(), one, "Faster R-CNN lite")
    check_equal(plain().detach(), threads(), "Faster R-CNN lite in threads")
    times = []
    for _ in range(rounds):
        before = milliseconds(plain), milliseconds(threads)
        with vgpu.virtual_gpus(2, force=True):
            times.append((*before, milliseconds(virtual)))
    # Without values nobody knows when suppression has settled; it is told at once, so its rounds are counted once only.
    settled = mock.patch.object(torch, "equal", lambda one, other: True)
    with FakeTensorMode(allow_non_fake_inputs=True), settled:
        _, step = detector(lambda model: model)
        step()
        fake = statistics.median(milliseconds(step) for _ in range(rounds))
    ratios = [statistics.median(gpus / row[k] for *row, gpus in times) for k in (0, 1)]
    return [*map(statistics.median, zip(*times, strict=True)), fake], ratios


def milliseconds(step: Step) -> float:
    """Processor time of a call that follows another."""
    step()
    started = time.process_time()
    step()
    return (time.process_time() - started) * 1e3


def check_equal(expected: torch.Tensor, found: torch.Tensor, what: str) -> None:
    if not torch.allclose(expected.cpu(), found.detach().cpu(), rtol=1e-4, atol=1e-6):
        raise AssertionError(f"{what}: the virtual result differs from the CPU's")


def rows() -> list[tuple[str, float, float, float | None, float | None]]:
    """For each load: microseconds on the CPU before enabling, on the CPU while enabled, virtual, FakeTensorMode."""
    loads = {
        "x + y, 8 elements": small_add,
        "x[:2]": small_view,
        "torch.zeros(8)": factory,
        "backward of (x * x).sum()": small_backward,
        "convolutions, forward + backward": convolutions,
    }
    table: list[tuple[str, float, float, float | None, float | None]] = []
    for name, load in loads.items():
        plain = load("cpu")
        before = microseconds(plain)
        with vgpu.virtual_gpus(2, force=True):
            enabled, virtual = load("cpu"), load("cuda:1")
            check_equal(plain(), virtual(), name)
            times = microseconds(enabled), microseconds(virtual)
        table.append((name, before, *times, _fake(load, plain())))
    with vgpu.virtual_gpus(2, force=True):
        parallel, halves = two_devices()
        check_equal(halves(), parallel(), "DataParallel")
        plain_time = microseconds(halves, 2.0)
        table.append(
            ("DataParallel on 2, against two halves", plain_time, plain_time, microseconds(parallel, 2.0), None)
        )
    return table


def _fake(load: Callable[[str], Step], expected: torch.Tensor) -> float | None:
    with FakeTensorMode():
        step = load("cpu")
        if step().shape != expected.shape:
            raise AssertionError("FakeTensorMode gives another shape")
        return microseconds(step)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; microseconds of processor time")
    print(f"{'':38} {'CPU':>9} {'CPU, on':>9} {'virtual':>9} {'fake':>9}   virtual / CPU")
    for name, before, enabled, virtual, fake in rows():
        cells = [f"{t:9.1f}" if t is not None else f"{'-':>9}" for t in (before, enabled, virtual, fake)]
        ratio = f"{virtual / before:8.2f}" if virtual is not None else ""
        print(f"{name:38} {' '.join(cells)}   {ratio}")
    (plain, threads, virtual, fake), (by_halves, by_threads) = detector_times()
    print("Faster R-CNN lite, training step of 8 pictures, milliseconds, medians of rounds that alternate:")
    print(
        f"CPU, two halves {plain:.0f}, in threads {threads:.0f}; DataParallel on 2 virtual GPUs {virtual:.0f}, ", end=""
    )
    print(f"{by_halves:.2f} and {by_threads:.2f} times as long; fake {fake:.0f}")


if __name__ == "__main__":
    main()
