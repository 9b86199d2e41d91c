"""Ranks for a checker: threads on virtual GPUs, which begin within milliseconds, and processes on real ones.

A cell of a notebook takes `@ranks`, whose processes are what it teaches. A checker calls an answer many times, and has
only to know what each rank returns.
"""

import copy
import re
import warnings
from collections.abc import Callable
from typing import Any

import vgpu
from course.kit.ranks import RanksFailed, ranks

# The note and the words of `vgpu.ranks`, which tell the rank that failed, and that ranks did not come together.
NOTE = re.compile(r"on rank (\d+) of \d+, a thread of vgpu\.ranks")
APART = re.compile(r"rank \d+ waited .*, and not every rank came")


def call_on_ranks(world_size: int, function: Callable[..., Any], *args: Any, limit: float) -> list[Any]:
    """What each rank returned for a copy of its own of the arguments, rank by rank.

    Args:
        world_size: how many ranks.
        function: what each of them calls.
        args: what it is called with.
        limit: seconds in a collective after which a rank counts as hanging.

    Raises:
        RanksFailed: a rank raised, or ranks waited for each other.
    """
    if not vgpu.is_enabled():
        return ranks(world_size, limit=limit)(function)(*args)
    with warnings.catch_warnings():  # around all ranks, because the filters are those of the process
        warnings.filterwarnings("ignore", message="virtual GPUs have no NCCL")  # it is no part of a verdict
        try:
            return vgpu.ranks(world_size, timeout=limit)(lambda: function(*copy.deepcopy(args)))()
        except Exception as error:
            raise _failed(error) from error


def is_apart(failed: RanksFailed) -> bool:
    """Whether ranks waited for each other, or called different collectives."""
    return bool(failed.positions or APART.search(str(failed)) or "simulated only" in str(failed))


def _failed(error: Exception) -> RanksFailed:
    if APART.search(str(error)):
        return RanksFailed(str(error))
    rank = next((int(found[1]) for note in getattr(error, "__notes__", ()) if (found := NOTE.match(note))), None)
    return RanksFailed(f"rank {rank} raised {type(error).__name__}: {error}", rank)
