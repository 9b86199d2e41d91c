"""A board of mistakes and machines: on which machine each mistake is first seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course.kit.figures import Ending, case_board
from course.kit.figures.svg import Figure

Call = Callable[[Sequence[Any]], Any]


def first_seen(mistakes: Mapping[str, tuple[Call, Any]], gpus: Sequence[Any]) -> Figure:
    """Call each mistake without a GPU, on one and on two, and draw how it ended. name -> (call, what is right)."""
    machines = {"no GPU": gpus[:0], "one GPU": gpus[:1], "two GPUs": gpus[:2]}
    board = {
        (name, f"run on: {machine}"): ending(call, right, devices)
        for name, (call, right) in mistakes.items()
        for machine, devices in machines.items()
    }
    return case_board(list(mistakes), {"run on": list(machines)}, board, "Where a mistake is first seen")


def ending(call: Call, right: Any, devices: Sequence[Any]) -> Ending:
    """Whether a call raises, gives what is right, or something else."""
    try:
        return Ending("right" if call(devices) == right else "wrong")
    except Exception:
        return Ending("raises")
