"""Running programs of one process: on the plain CPU, and on two virtual GPUs."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator

import torch
from same_numbers import same_numbers

import vgpu
from differential.program import Program
from differential.record import NAME, Record

GPUS = 2


@contextlib.contextmanager
def comparable() -> Iterator[None]:
    """Draw the same numbers on both devices, and be silent.

    Both hold for the whole process. So ranks that are threads need it once, around all of them: where each put back
    what it had found, the last one could put back what a different rank had changed.
    """
    with warnings.catch_warnings(), same_numbers():
        warnings.simplefilter("ignore")
        yield


def run(program: Program, *arguments: object) -> Record:
    """Call the program's function `program` with these arguments and a record, which is returned."""
    with comparable():
        return run_comparable(program, *arguments)


def run_comparable(program: Program, *arguments: object) -> Record:
    """The same where `comparable` holds already."""
    record = Record()
    names: dict = {"__name__": NAME}
    exec(compile(program.source, NAME, "exec"), names)
    try:
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
