"""Two machines on one: two agents of torchrun that find each other, and a training run that a kill does not end.

    torchrun --nnodes 2 --nproc-per-node 1 --max-restarts 1 ... -m course.workers.elastic FOLDER

is the program of each machine. `two_machines(folder)` starts both here, as processes, and waits for them.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor, distributed

from frcnn_lite.parallel.process_group import process_group

STEPS, SAVE_EVERY, KILLED_AT = 12, 5, 8
SECONDS = 180.0  # a guard against agents that never end; they need ten, and a multiple of it on a busy machine
LR = 0.1


def gradient(rank: int, step: int) -> Tensor:
    """What a rank's batch of this step contributes: it depends on these two numbers alone."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(3, generator=generator, dtype=torch.float64)


def train(folder: Path) -> None:
    """Go on from the checkpoint, if there is one. Rank 1 is killed in step `KILLED_AT`, once."""
    weights, done = load(folder / "checkpoint.pt")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    for step in range(done + 1, STEPS + 1):
        # A file remembers it: TORCHELASTIC_RESTART_COUNT is each agent's own, and ranks may change machines.
        if (rank, step) == (1, KILLED_AT) and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        total = gradient(rank, step)
        distributed.all_reduce(total)
        weights -= LR * total / world_size
        with (folder / f"rank {rank}.log").open("a", encoding="utf-8") as log:
            log.write(f"{step}\n")
        if step % SAVE_EVERY == 0 or step == STEPS:
            if rank == 0:
                save(weights, step, folder / "checkpoint.pt")
            distributed.barrier()  # nobody goes on, and nobody is killed, before the file is there


def load(file: Path) -> tuple[Tensor, int]:
    """Weights, and the steps that are in them; zeros before the first checkpoint."""
    if not file.exists():
        return torch.zeros(3, dtype=torch.float64), 0
    state = torch.load(file, weights_only=True)
    return state["weights"], state["step"]


def save(weights: Tensor, step: int, file: Path) -> None:
    """Written beside and renamed: a kill in the middle leaves the old checkpoint whole."""
    beside = file.with_suffix(".new")
    torch.save({"weights": weights, "step": step}, beside)
    beside.replace(file)


def steps_taken(folder: Path, rank: int) -> list[list[int]]:
    """The steps that a rank finished, a list for each of its lives; a new life begins where the numbers go back."""
    lives: list[list[int]] = [[]]
    for step in map(int, (folder / f"rank {rank}.log").read_text(encoding="utf-8").split()):
        if lives[-1] and step <= lives[-1][-1]:
            lives.append([])
        lives[-1].append(step)
    return lives


def two_machines(folder: Path, restarts: int = 1) -> list[int]:
    """Run `train` on two "machines" with a rank each: two agents that know one address and one id.

    Returns their exit codes. Raises TimeoutError when they have not ended after `SECONDS`; they are ended then.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "notebook"]
    command += ["--local-addr", "127.0.0.1", "--max-restarts", str(restarts), "--monitor-interval", "0.1"]
    command += ["-m", __name__, str(folder)]
    # With the agents' store shared, ranks of the second life read the addresses of the first from it and try to connect
    # to processes that are gone (pytorch/pytorch issue 135712, 2024; met in half of the runs with torch 2.13 and 2.15).
    environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    agents = [_start(command, environment, folder / f"agent {machine}.txt") for machine in range(2)]
    try:
        return [agent.wait(SECONDS) for agent in agents]
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the agents did not end within {SECONDS:g} s; what they said is in {folder}") from None
    finally:
        for agent in agents:
            agent.terminate()  # an agent ends its ranks first
        for agent in agents:
            agent.wait(SECONDS)


def _start(command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as file:
        return subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    with process_group("cpu"):
        train(parser.parse_args().folder)
