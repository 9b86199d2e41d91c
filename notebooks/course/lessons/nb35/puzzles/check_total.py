"""A test for `program(batches, side)`, which copies each batch to the GPU on the stream `side` and returns the sum of
all their numbers, as a tensor on the GPU. The test calls it and passes where the number is right and nothing races;
otherwise it raises an error.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor

import vgpu
from course.kit.learn.exercise import Case, Program, Trial
from course.kit.learn.puzzle import also, wrong

hints = (
    "A program with a race returns the right number here. So look at both: the number, and the races.",
    "Memory is handed out again when a third batch of the same size comes. And who reads the total? You do, on the "
    "default stream: do it where races are looked for.",
    "Four pinned batches of one size, then `with vgpu.races():`, and inside of it `assert program(batches, "
    "torch.cuda.Stream()).item() == ...`.",
)


Total = Callable[[list[Tensor], torch.cuda.Stream], Tensor]
Test = Callable[[Total], None]


def _fetch(batch: Tensor, side: torch.cuda.Stream) -> Tensor:
    with torch.cuda.stream(side):
        return batch.to("cuda", non_blocking=True)


def _zero() -> Tensor:
    return torch.zeros((), device="cuda")


def _waits_and_records(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    main, total = torch.cuda.current_stream(), _zero()
    for batch in batches:
        on_gpu = _fetch(batch, side)
        main.wait_stream(side)
        total += on_gpu.sum()
        on_gpu.record_stream(main)
    return total


def _keeps_all(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    kept, done, total = [_fetch(batch, side) for batch in batches], torch.cuda.Event(), _zero()
    done.record(side)
    torch.cuda.current_stream().wait_event(done)
    for on_gpu in kept:
        total += on_gpu.sum()
        on_gpu.record_stream(torch.cuda.current_stream())
    return total


def _one_stream(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    return sum((batch.cuda().sum() for batch in batches), _zero())


def _nothing_waits(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    total = _zero()
    for batch in batches:
        on_gpu = _fetch(batch, side)
        total += on_gpu.sum()
        on_gpu.record_stream(torch.cuda.current_stream())
    return total


def _wrong_direction(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    total = _zero()
    for batch in batches:
        on_gpu = _fetch(batch, side)
        side.wait_stream(torch.cuda.current_stream())
        total += on_gpu.sum()
    return total


def _first_batch_alone(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    main, total = torch.cuda.current_stream(), _zero()
    for k, batch in enumerate(batches):
        on_gpu = _fetch(batch, side)
        if k == 0:
            main.wait_stream(side)
        total += on_gpu.sum()
        on_gpu.record_stream(main)
    return total


def _drops(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    total = _zero()
    for batch in batches:
        on_gpu = _fetch(batch, side)
        torch.cuda.current_stream().wait_stream(side)
        total += on_gpu.sum()
    return total


def _on_the_side(batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    """Everything is on one stream, and whoever reads the total is on a different one."""
    with torch.cuda.stream(side):
        return _one_stream(batches, side)


def _left_out(which: int, batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    return _waits_and_records([batch for k, batch in enumerate(batches) if k != which], side)


def _scaled(factor: float, batches: list[Tensor], side: torch.cuda.Stream) -> Tensor:
    return factor * _waits_and_records(batches, side)


def cases(random: Random) -> Sequence[Case]:
    """Three right programs and seven wrong ones, of which two are drawn."""
    factor = random.uniform(0.2, 0.8)
    left_out = random.randint(1, 2)
    programs: dict[str, Total] = {
        "waits, and records the stream": _waits_and_records,
        "keeps all batches, and waits for an event": _keeps_all,
        "uses one stream": _one_stream,
        "nothing waits": _nothing_waits,
        "the side stream waits, not the reader": _wrong_direction,
        "waits for the first batch alone": _first_batch_alone,
        "drops a batch that is still read": _drops,
        "leaves the total on the side stream": _on_the_side,
        f"leaves out batch number {left_out}": partial(_left_out, left_out),
        f"multiplies the total by {factor:.2f}": partial(_scaled, factor),
    }
    return [Trial((Program(name, run),)) for name, run in programs.items()]


def _batches(count: int) -> list[Tensor]:
    return [torch.full((4,), float(k + 1)).pin_memory() for k in range(count)]


def check_total(program: Total) -> None:
    batches = [torch.full((4,), k + 1.0).pin_memory() for k in range(4)]
    with vgpu.races():
        assert program(batches, torch.cuda.Stream()).item() == 40


@wrong
def the_number_alone(program: Total) -> None:
    """this is how a test ends that compares the number and looks for no race. Every race passes it here, and on a GPU
    most of them on most days.

    Source: pytorch/pytorch issue 195281, 2026: a race that goes well on one maker's GPUs, and so in the CI
    """
    assert program(_batches(4), torch.cuda.Stream()).item() == 40


@wrong
def races_alone(program: Total) -> None:
    """this is how a test ends that looks for races alone. A program that leaves out a batch has none."""
    with vgpu.races():
        program(_batches(4), torch.cuda.Stream()).item()


@also(races_alone)
def races_alone_unread(program: Total) -> None:
    with vgpu.races():
        program(_batches(4), torch.cuda.Stream())


@wrong
def collected_and_forgotten(program: Total) -> None:
    """this is how a test ends that never fails. `vgpu.races(error=False)` collects the races and raises nothing: assert
    that its list is empty, and that the number is right.
    """
    with vgpu.races(error=False):
        program(_batches(4), torch.cuda.Stream())


@wrong
def one_batch(program: Total) -> None:
    """this is how a test ends that gives the program one batch: what goes wrong from the second one on passes it."""
    with vgpu.races():
        assert program(_batches(1), torch.cuda.Stream()).item() == 4


@wrong
def two_batches(program: Total) -> None:
    """this is how a test ends whose batches are too few, or all of different sizes. The memory of a batch that was
    dropped is handed out again when the third one of its size comes.
    """
    with vgpu.races():
        assert program(_batches(2), torch.cuda.Stream()).item() == 12


@wrong
def read_too_late(program: Total) -> None:
    """this is how a test ends that reads the total after the block in which races are looked for. A program that leaves
    its total on the side stream passes it: the read is the second half of that race.
    """
    with vgpu.races():
        total = program(_batches(4), torch.cuda.Stream())
    assert total.item() == 40
