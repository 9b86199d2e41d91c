"""What virtual GPUs cost, beside plain CPU tensors and beside PyTorch's own FakeTensorMode, in one run.

    python benchmarks/bench_vgpu.py

Ratios only mean something within one run on one machine. Results are checked to be equal before anything is timed;
FakeTensorMode computes no values, so only its shapes and devices are checked.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from frcnn_lite import vgpu

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


if __name__ == "__main__":
    main()
