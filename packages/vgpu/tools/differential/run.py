"""Running programs of one process: on the plain CPU, and on two virtual GPUs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import torch
from same_numbers import same_numbers

import vgpu
from differential.program import Program
from differential.record import NAME, Record

GPUS = 2


def run(program: Program, *arguments: object) -> Record:
    """Call the program's function `program` with these arguments and a record, which is returned."""
    record = Record()
    names: dict = {"__name__": NAME}
    exec(compile(program.source, NAME, "exec"), names)
    try:
        with warnings.catch_warnings(), same_numbers():
            warnings.simplefilter("ignore")
            names["program"](*arguments, record)
    except Exception as error:
        record.fails(error)
    return record


def on_cpu(programs: Iterable[Program]) -> list[Record]:
    """Run programs with the CPU in the place of all GPUs, and no virtual ones enabled."""
    if vgpu.is_enabled():
        raise RuntimeError("the reference is a process without virtual GPUs")
    return [run(program, [torch.device("cpu")] * GPUS) for program in programs]


def on_gpus(programs: Iterable[Program]) -> list[Record]:
    """Run programs on virtual GPUs."""
    with vgpu.virtual_gpus(GPUS, force=True) as gpus:
        return [run(program, gpus) for program in programs]
