"""Times of rivals that can be compared on a busy machine: in turns, by torch.utils.benchmark."""

import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.benchmark import Timer

TURN = 0.004  # seconds


def paired_times(candidates: Mapping[str, Callable[[], Any]], rounds: int = 20) -> dict[str, list[float]]:
    """Seconds a call, `rounds` numbers a candidate.

    Every round runs all candidates, so that a slow moment of the machine hurts all of them: compare the ratios of a
    round, or medians. A round shuffles them, so that none always meets the caches of the same neighbour, and repeats a
    short call until its turn lasts `TURN`. On a GPU each turn is waited for. Times on virtual GPUs mean nothing.
    """
    threads = torch.get_num_threads()  # a Timer would take one
    timers = {name: Timer("call()", globals={"call": call}, num_threads=threads) for name, call in candidates.items()}
    calls = {name: max(1, round(TURN / timer.timeit(1).median)) for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in candidates}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(candidates), len(candidates)):
            times[name].append(timers[name].timeit(calls[name]).median)
    return times


def median_ratio(times: Mapping[str, list[float]], name: str, base: str) -> float:
    """How many times longer `name` takes than `base`: the median over the rounds, each compared with itself."""
    return statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))
