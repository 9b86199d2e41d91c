"""The command of the tester: `python -m differential`; the package's docstring says how it is called."""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import torch

from differential import draw, mutants, processes, ranks, rounding, run, threads
from differential.compare import differences
from differential.program import Program
from differential.record import Record

AT_A_TIME = 10  # virtual GPUs are enabled once for so many programs
NAMES = ("programs", "values", "raised on the CPU, too", "different by rounding", "different")  # what is counted
UNITS = {"s": 1, "m": 60, "h": 3600}

# The program, the reference, and the record of each rank.
Outcome = tuple[Program, Record, list[Record]]


def in_one_process(seeds: Iterable[int], mutant: str) -> Iterator[Outcome]:
    """Programs of one process, one after the other."""
    seeds = iter(seeds)
    while programs := [draw.draw(seed) for seed, _ in zip(seeds, range(AT_A_TIME), strict=False)]:
        references = run.on_cpu(programs)
        with mutants.planted(mutant):
            records = run.on_gpus(programs)
        for program, expected, found in zip(programs, references, records, strict=True):
            yield program, expected, [found]


def on_ranks(seeds: Iterable[int], count: int, mutant: str) -> Iterator[Outcome]:
    """Programs of several processes, one after the other."""
    with processes.Ranks(count) as group:
        for seed in seeds:
            program = ranks.draw(seed, count)
            (expected,) = processes.references([program])
            yield program, expected, processes.on_ranks(group, program, mutant)


def on_threads(seeds: Iterable[int], count: int, mutant: str) -> Iterator[Outcome]:
    """The same programs, whose ranks are threads."""
    for seed in seeds:
        program = ranks.draw(seed, count)
        (expected,) = processes.references([program])
        with mutants.planted(mutant):
            found = threads.on_threads(program)
        yield program, expected, found


def judge(outcome: Outcome) -> list[str]:
    """What differs, of all ranks."""
    program, expected, records = outcome
    said = []
    for rank, found in enumerate(records):
        whose = f"rank {rank}, " if program.ranks > 1 else ""
        said += [whose + sentence for sentence in differences(expected, found, program.exact)]
    return said


def is_rounding(outcome: Outcome) -> bool:
    """Whether the CPU differs from itself as much as this program of one process does."""
    program, expected, records = outcome
    return program.ranks == 1 and rounding.explains(program, expected, records[0])


def seconds(text: str) -> float:
    """`90s`, `60m` or `3h` as a number of seconds."""
    parsed = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if parsed is None:
        raise argparse.ArgumentTypeError(f"write a number and s, m or h, as in 60m, not {text!r}")
    return float(parsed[1]) * UNITS[parsed[2]]


def numbers(first: int, until: Callable[[], bool]) -> Iterator[int]:
    """Seeds from `first` on, as long as `until()` is false."""
    while not until():
        yield first
        first += 1


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="one program, which is printed")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of many seeds")
    parser.add_argument("--count", type=int, default=None, help="how many seeds")
    parser.add_argument("--for", type=seconds, default=None, dest="lasts", metavar="60m", help="how long")
    parser.add_argument("--stop", action="store_true", help="stop at the first difference")
    parser.add_argument("--ranks", type=int, default=1, help="in so many processes")
    parser.add_argument("--threads", action="store_true", help="the ranks are threads of this process")
    parser.add_argument("--mutant", default="", choices=["", *mutants.MUTANTS, *mutants.RANK_MUTANTS])
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    if options.seed is not None:
        options.first, options.count = options.seed, 1
        print(draw.draw(options.seed) if options.ranks == 1 else ranks.draw(options.seed, options.ranks))
    started = time.monotonic()
    count = options.count if options.lasts is None else None
    last = None if count is None else options.first + count
    seeds: Iterator[int] = (
        iter(range(options.first, last))
        if last is not None
        else numbers(options.first, lambda: time.monotonic() - started > (options.lasts or 60))
    )
    several = on_threads if options.threads else on_ranks
    outcomes = (
        in_one_process(seeds, options.mutant) if options.ranks == 1 else several(seeds, options.ranks, options.mutant)
    )
    totals: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    for program, expected, records in outcomes:
        said = judge((program, expected, records))
        totals["programs"] += 1
        totals["values"] += len(expected.values) * len(records)
        totals["raised on the CPU, too"] += bool(expected.raised)
        pieces.update(program.pieces)
        if said and is_rounding((program, expected, records)):
            totals["different by rounding"] += 1
            print(f"seed {program.seed}: by rounding, {said[0]}", flush=True)
            continue
        totals["different"] += bool(said)
        for sentence in said[:5]:
            print(f"seed {program.seed}: {sentence}", flush=True)
        if said[5:]:
            print(f"seed {program.seed}: and {len(said) - 5} more")
        if said and options.stop:
            break
    print(", ".join(f"{totals[name]} {name}" for name in NAMES))
    if totals["programs"] > 1:
        print("pieces:", ", ".join(f"{name} {times}" for name, times in sorted(pieces.items())))
    print(f"{time.monotonic() - started:.0f} s, torch {torch.__version__}")
    return int(totals["different"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
