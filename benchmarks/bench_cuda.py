"""A training step on a GPU beside torchvision's Faster R-CNN: `python benchmarks/bench_cuda.py`.

The detectors, pictures and steps are those of bench_detector.py. First the losses are compared on this GPU. A ratio is
the median over rounds, in which both take turns, of torchvision's time by ours: 1.50 x means that ours takes two
thirds. Where there is no real GPU, what was measured on one is printed, with its date and card.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torchvision
from bench_detector import check_losses, count, count_waits, losses_of, models, steps
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

RECORD = """No real GPU is here. Measured on 2026-11-27 on one NVIDIA H200 (torch 2.11.0+cu130, torchvision 0.26):

torchvision's time by that of ours, forward; forward and backward
  RoI pooling, `roi_bins` and Triton       0.07-0.42 x; 0.14-0.41 x
  RoIAlign, plain torch                    0.03-0.09 x; 0.07-0.19 x
so on a GPU both are torchvision's operators since then.

training step, beside torchvision's detector (34 and 186 MiB at B=2 and B=8)
  with the plain RoIAlign        B=2: 1.0 x, 81 MiB     B=8: 1.8-2.1 x, 278 MiB
  with torchvision's RoIAlign    B=2: 1.25 x, 33 MiB    B=8: 2.2 x, 184 MiB
That NMS asks once, and not after every round, has not been measured on a GPU."""
AIMS = {2: 1.3, 8: 2.0}  # of the ratio of a step; memory: at most torchvision's


class Cost(NamedTuple):
    """Of one detector at one size of a batch: peak memory in bytes, operator calls, kernels and waits of a step."""

    memory: int
    calls: int
    kernels: int
    waits: int


def main() -> None:
    """Check, then print a table for each way to train, or the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(RECORD)
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, torchvision {torchvision.__version__}")
    check_losses("cuda")
    for name, ways in {"float32": (), "autocast to bfloat16": ("amp",), "DDP, one rank": ("ddp",)}.items():
        print(f"\n{name}: B | step, torchvision ms | ours ms | ratio (aim) | forward | MiB | calls | kernels | waits")
        for batch in (2, 4, 8, 16):
            print(row(batch, options.rounds, *ways))


def row(batch: int, rounds: int, *ways: str) -> str:
    """One line: times and ratios, then torchvision's cost and ours."""
    with trained(*ways) as (theirs, ours):
        step, forward = (
            median_ratio(*both, rounds)
            for both in (steps(batch, theirs, ours, "cuda"), losses_of(theirs, ours, batch, "cuda"))
        )
    costs = [cost(which, batch, *ways) for which in (0, 1)]
    aim = f" ({AIMS[batch]})" if batch in AIMS else ""
    pairs = (f"{a}, {b}" for a, b in zip(*costs, strict=True))
    memory = ", ".join(f"{one.memory / 2**20:.0f}" for one in costs)
    return (
        f"{batch} | {step[0]:.1f} | {step[1]:.1f} | {step[2]:.2f} x{aim} | {forward[2]:.2f} x | {memory} | "
        + " | ".join([*pairs][1:])
    )


@contextlib.contextmanager
def trained(*ways: str) -> Iterator[list[nn.Module]]:
    """Both detectors on the GPU, as they are trained in one of the ways; a rank of DDP has its process group."""
    with contextlib.ExitStack() as stack:
        pair: list[nn.Module] = [model.to("cuda") for model in models()]
        if "amp" in ways:
            stack.enter_context(torch.autocast("cuda", torch.bfloat16))
        if "ddp" in ways:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            distributed.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
            stack.callback(distributed.destroy_process_group)
            # Nothing of theirs or of ours changes a buffer.
            pair = [DistributedDataParallel(model, device_ids=[0], broadcast_buffers=False) for model in pair]
        yield pair


def median_ratio(theirs: Callable[[], object], ours: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Milliseconds of both, and the ratio, each a median over rounds."""
    for function in (theirs, ours) * 3:
        function()
    times = [(milliseconds(theirs), milliseconds(ours)) for _ in range(rounds)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    return first, second, statistics.median(a / b for a, b in times)


def milliseconds(function: Callable[[], object]) -> float:
    """Until the GPU has done all of it."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def cost(which: int, batch: int, *ways: str) -> Cost:
    """Of torchvision's detector (0) or ours (1), alone on the GPU."""
    with trained(*ways) as pair:
        step = steps(batch, pair[0], pair[1], "cuda")[which]
        pair[1 - which].to("cpu")
        step()
        torch.cuda.reset_peak_memory_stats()
        step()
        memory = torch.cuda.max_memory_allocated()
        return Cost(memory, count(step), kernels(step), count_waits(step))


def kernels(step: Callable[[], None]) -> int:
    """Kernels that the GPU runs in one step, copies among them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.profiler.DeviceType.CUDA for event in profile.events())


if __name__ == "__main__":
    main()
