"""FL040: a learning rate that each rank lowers when the loss of its own rows stops falling."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name, method_of
from ..over_ranks import names_in, trains_over_ranks
from ..readings import Reading
from .number_of_one_rank import TOGETHER
from .sampler_without_epoch import judges

RULE = Rule(
    "FL040",
    "schedule-of-one-rank",
    "each rank judges its own share of the data, so the ranks lower their learning rates at different times",
    "dist.all_reduce the sum and the count of the losses on every rank, and step with their mean",
    "metric-not-reduced",
)
PLATEAU = "ReduceLROnPlateau"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    others = names_in(program) - {PLATEAU}
    if not trains_over_ranks(program) or any(TOGETHER.search(name) for name in others):
        return
    calls = [node for node in ast.walk(program.tree) if isinstance(node, ast.Call)]
    if not any(last_name(node) == "DistributedSampler" and judges(node, program) for node in calls):
        return  # every rank judges all of the data
    plateaus = {
        ast.unparse(node.targets[0])
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign) and last_name(node.value) == PLATEAU
    }
    for node in calls:
        if method_of(node) == "step" and node.args and ast.unparse(node.func.value) in plateaus:  # type: ignore[attr-defined]
            yield node, f"{ast.unparse(node)} of a ReduceLROnPlateau, by this rank's number"
