"""How ways to keep a size in a layer end, on one GPU and on two, called once and twice before a backward."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from course.kit.figures import Ending, Figure, case_board

TIMES = {"once": 1, "twice": 2}
Trial = Callable[[Any, Sequence[torch.device], int], tuple[str, float]]


def keep_board(trial: Trial, ways: Mapping[str, Any], places: Mapping[str, Sequence[torch.device]]) -> Figure:
    """A row for each way and a column for each place and number of calls.

    Args:
        trial: (way, devices, calls) -> how the step ended, "works" or an error, and the size that the layer has kept.
        ways: name -> what `trial` gets.
        places: name -> devices.
    """
    board = {}
    for way, keep in ways.items():
        for place, devices in places.items():
            for words, calls in TIMES.items():
                said, size = trial(keep, devices, calls)
                kept = Ending("right" if size else "wrong", f"keeps {size:.2f}")
                board[way, f"{place}: {words}"] = kept if said == "works" else Ending("raises")
    return case_board(list(ways), {place: list(TIMES) for place in places}, board, "Three ways to keep a size")
