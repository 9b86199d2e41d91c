"""Several ranks for a test, each with its virtual GPU, in one process group: processes, or threads."""

import os
import socket
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import vgpu

T = TypeVar("T")
# A fork server imports torch once, in place of each rank; test_vgpu_processes.py starts ranks by spawn, too.
START = "forkserver" if sys.platform == "linux" else "spawn"


def on_ranks(work: Callable[[int], None], ranks: int = 2, backend: str | None = "nccl", **options: str) -> None:
    """Call `work(rank)` in as many processes; what raises in one of them raises here.

    Args:
        work: importable by name in a child.
        ranks: how many processes.
        backend: of the process group; None where `work` makes its own.
        options: environment variables of the children.
    """
    preload()
    args = (work, ranks, backend, str(free_port()), options)
    mp.start_processes(_child, args=args, nprocs=ranks, start_method=START)


def preload() -> None:
    """What the fork server imports; it counts for the first server of a process."""
    mp.set_forkserver_preload(["torch", "torch.distributed.fsdp"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on_threads(work: Callable[[int], T], ranks: int = 2, **options: Any) -> list[T]:
    """Call `work(rank)` on as many threads, and return what each returned; `options` are those of `vgpu.ranks`."""
    return vgpu.ranks(ranks, **options)(lambda: work(int(os.environ["RANK"])))()


def _child(rank: int, work: Callable[[int], None], ranks: int, backend: str | None, port: str, options: dict) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(ranks), **options)
    torch.set_num_threads(1)
    torch.cuda.set_device(rank)
    if backend is not None:
        dist.init_process_group(backend, device_id=torch.device("cuda", rank) if "nccl" in backend else None)
    work(rank)
    if dist.is_initialized():
        dist.destroy_process_group()
