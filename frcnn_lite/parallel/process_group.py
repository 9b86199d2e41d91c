"""Join the processes that torchrun, or `run_ranks`, has started; alone, do nothing.

A script that begins with `with process_group() as device:` is the same program on one CPU, on one GPU, and as any
number of ranks.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import distributed

DEFAULT_TIMEOUT = 600.0  # seconds; a first batch or a validation on one rank takes its time
NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def is_launched() -> bool:
    """Whether torchrun or `run_ranks` has started this process, by its environment."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_main_rank() -> bool:
    """True on rank 0, and in a process that is alone: the one that writes files and prints."""
    return rank_and_size()[0] == 0


def rank_and_size() -> tuple[int, int]:
    """This process's number and how many there are: (0, 1) without a process group."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


@contextmanager
def process_group(device: torch.device | str | None = None, *, timeout: float | None = None) -> Iterator[torch.device]:
    """`init_from_env` for the block, and out of the group at its end, so that no rank waits for one that has left.

    A process that nobody launched as a rank joins nothing. A group that this process is in already is used, and left
    alone.

    Args:
        device: that of `init_from_env`; in a process alone the default is cuda:0, or the CPU.
        timeout: that of `init_from_env`.

    Yields:
        The device of this process.

    Raises:
        RuntimeError, ValueError: as `init_from_env`.
    """
    if not is_launched() or distributed.is_initialized():
        yield choose_device(device)
        return
    chosen = init_from_env(device, timeout=timeout)
    yield chosen
    # Not in a finally: after an error the peers are in another collective, and leaving in good order would wait for
    # them. The connections break when this process ends, and that is how they learn of it.
    distributed.destroy_process_group()


def init_from_env(device: torch.device | str | None = None, *, timeout: float | None = None) -> torch.device:
    """Join the process group that the environment describes; make this rank's device current and return it.

    Args:
        device: the default is cuda:LOCAL_RANK where there are GPUs, else the CPU. It decides the backend: NCCL for a
            GPU, gloo for the CPU.
        timeout: seconds that a collective may wait for the other ranks; the default is `DEFAULT_TIMEOUT`.

    Raises:
        RuntimeError: a variable of the environment is missing; the message names all that are.
        ValueError: there is no such device, or it belongs to a different rank.
    """
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        raise RuntimeError(
            f"{', '.join(missing)} not set in the environment: start this program with "
            "`torchrun --nproc-per-node 2 program.py`, or the function with run_ranks(function, 2)"
        )
    chosen = choose_device(device)
    if chosen.type == "cuda":
        # Before anything else uses a GPU. Without it cuda:0 stays current in every process: bare .cuda() tensors of all
        # ranks go there, NCCL binds all ranks to one GPU, and each process keeps a context of its own in its memory.
        torch.cuda.set_device(chosen)
    patience = timedelta(seconds=DEFAULT_TIMEOUT if timeout is None else timeout)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=patience)
    return chosen


def choose_device(device: torch.device | str | None = None) -> torch.device:
    """The device of this process: `device` if given, else that of its local rank. Raises ValueError."""
    local_rank, present = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    chosen = torch.device(device or ("cuda" if present else "cpu"))
    if chosen.type == "cuda" and chosen.index is None:
        chosen = torch.device("cuda", local_rank)
    if chosen.type == "cuda" and (chosen.index or 0) >= present:
        raise ValueError(
            f"local rank {local_rank} wants {chosen}, and this process sees {present} GPUs: start one process "
            "for each GPU, or choose device='cpu'"
        )
    return chosen
