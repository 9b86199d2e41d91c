"""Running programs for several ranks: processes that stay, each with its virtual GPU, in one process group."""

from __future__ import annotations

import os
import queue
import socket
import sys
import time
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import vgpu
from differential import mutants
from differential.program import Program
from differential.record import Record
from differential.run import run

START = "forkserver" if sys.platform == "linux" else "spawn"  # a fork server imports torch once, in place of each rank
LIMIT = 600.0  # seconds that a program may take before its ranks count as stuck


class Ranks:
    """A process group of processes that stay, which run one program after the other.

    Where one rank raises and another does not, they no longer agree on collectives: the processes are started afresh.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._children: list[Any] = []

    def __enter__(self) -> Ranks:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, program: Program, mutant: str = "") -> list[Record]:
        """The record of each rank, while a fault is planted in it or not."""
        for tasks in self._tasks:
            tasks.put((program, mutant))
        found: dict[int, Record] = {}
        ends = time.monotonic() + LIMIT
        while len(found) < self.ranks:
            try:
                rank, record = self._done.get(timeout=1.0)
                found[rank] = record
                if record.raised:
                    ends = min(ends, time.monotonic() + 5.0)
            except queue.Empty:
                if time.monotonic() > ends:
                    break
        if len(found) < self.ranks or len({record.raised for record in found.values()}) > 1:
            self._stop()
            self._start()
        missing = Record(raised="nothing, and did not end", message="a rank is stuck")
        return [found.get(rank, missing) for rank in range(self.ranks)]

    def _start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = mp.get_context(START)
        self._tasks = [context.Queue() for _ in range(self.ranks)]
        self._done = context.Queue()
        with vgpu.virtual_gpus(self.ranks, force=True):  # children of a virtual process are virtual
            for rank, tasks in enumerate(self._tasks):
                given = (rank, self.ranks, port, tasks, self._done)
                self._children.append(context.Process(target=_child, args=given, daemon=True))
                self._children[-1].start()

    def _stop(self) -> None:
        for tasks in self._tasks:
            tasks.put(None)
        for child in self._children:
            child.join(timeout=5.0)
            if child.is_alive():
                child.kill()
                child.join()
        self._children.clear()


def _child(rank: int, ranks: int, port: int, tasks: Any, done: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", rank))
    while (task := _next(tasks)) is not None:
        program, mutant = task
        with mutants.planted(mutant):
            record = run(program, rank, ranks, torch.device("cuda", rank))
        # As numbers: tensors of a queue would stay in memory that both processes share.
        record.values = {k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in record.values.items()}
        done.put((rank, record))
    dist.destroy_process_group()


def _next(tasks: Any) -> Any:
    """The next task; None, which is the last, where the tester itself has gone."""
    while True:
        try:
            return tasks.get(timeout=5.0)
        except queue.Empty:
            if not mp.parent_process().is_alive():
                return None


def references(programs: Iterable[Program]) -> list[Record]:
    """The records of the same programs as one process on the CPU, with all rows."""
    return [run(program, 0, 1, torch.device("cpu")) for program in programs]


def on_ranks(group: Ranks, program: Program, mutant: str = "") -> list[Record]:
    """The records of a program's ranks, with tensors."""
    records = group.run(program, mutant)
    for record in records:
        record.values = {k: torch.as_tensor(v) if hasattr(v, "dtype") else v for k, v in record.values.items()}
    return records
