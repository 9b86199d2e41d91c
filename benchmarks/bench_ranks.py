"""What a whole test on two ranks costs as threads of this process, and as processes that are spawned, in one run.

    python benchmarks/bench_ranks.py

Both give the same losses before anything is timed. The runs alternate, so a busy machine slows both. Processes import
torch, which is most of what they cost; on Windows, which does not say how long a child has computed, only the clock
compares them.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

import vgpu
from frcnn_lite.parallel.launch import run_ranks
from frcnn_lite.parallel.process_group import process_group

RANKS, STEPS, ROUNDS = 2, 3, 5


def train() -> list[float]:
    """Some steps of DDP; the losses of this rank."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4).double().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.arange(64.0, dtype=torch.float64).view(8, 8).sin()[dist.get_rank() :: RANKS].cuda()
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def threads() -> list[list[float]]:
    """The losses of ranks that are threads."""
    with vgpu.virtual_gpus(RANKS, force=True):
        return vgpu.ranks(RANKS)(train)()


def processes() -> list[list[float]]:
    """Those of ranks that are spawned."""
    return run_ranks(spawned, RANKS, timeout=300, start_method="spawn")


def spawned() -> list[float]:
    """The life of a process that is a rank."""
    torch.set_num_threads(1)
    vgpu.enable(RANKS, force=True)
    with process_group(None):
        return train()


def timed(ranks: Callable[[], list[list[float]]]) -> tuple[float, float]:
    """Seconds on the clock, and of processor time in this process and its children."""
    clock, computed = time.perf_counter(), sum(os.times()[:4])
    ranks()
    return time.perf_counter() - clock, sum(os.times()[:4]) - computed


def main() -> None:
    """Print both, and their ratios."""
    expected, found = processes(), threads()
    if found != expected:
        raise AssertionError(f"ranks that are threads computed {found}, and processes {expected}")
    rounds = [(timed(threads), timed(processes)) for _ in range(ROUNDS)]
    print(
        f"torch {torch.__version__}; {STEPS} steps of DDP on {RANKS} ranks, the same losses; median of {ROUNDS} rounds"
    )
    for kind, name in enumerate(("the clock", "processor time")):
        own = [(one[kind], other[kind]) for one, other in rounds]
        few, many = (statistics.median(column) for column in zip(*own, strict=True))
        ratio = statistics.median(b / a for a, b in own)
        print(f"{name}: threads {few * 1e3:.0f} ms, spawned processes {many * 1e3:.0f} ms, {ratio:.0f} times")


if __name__ == "__main__":
    main()
