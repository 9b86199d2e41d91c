"""Running programs for several ranks: threads of this process, each with its virtual GPU, in one process group."""

from __future__ import annotations

import torch
import torch.distributed as dist

import vgpu
from differential.program import Program
from differential.record import Record
from differential.run import comparable, run_comparable


def on_threads(program: Program) -> list[Record]:
    """The records of a program's ranks."""

    @vgpu.ranks(program.ranks, backend="cpu:gloo,cuda:nccl")
    def on_rank() -> Record:
        rank = dist.get_rank()
        return run_comparable(program, rank, program.ranks, torch.device("cuda", rank))

    with vgpu.virtual_gpus(program.ranks, force=True), comparable():
        return on_rank()
