"""FL040: a learning rate that ranks lower at different times, or that the first rank alone lowers."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name, method_of, owner_of
from ..over_ranks import names_in, shares_gradients, trains_over_ranks
from ..ranks import Ranks
from ..readings import Reading
from ..scopes import Program
from .number_of_one_rank import TOGETHER
from .resumed_on_one_rank import SENDS, others_do
from .sampler_without_epoch import judges

RULE = Rule(
    "FL040",
    "schedule-of-one-rank",
    "the ranks lower their learning rates at different times, and then train with different ones",
    "step on every rank, with one number: dist.all_reduce the sum and the count of the losses, or broadcast the loss",
    "metric-not-reduced",
)
PLATEAU = "ReduceLROnPlateau"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    others = names_in(program) - {PLATEAU}
    if shares_gradients(program) and not any(SENDS.search(name) for name in others):
        yield from _on_the_first_alone(program)
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
            yield node, f"{ast.unparse(node)} of a ReduceLROnPlateau, by the loss of this rank's own rows"


def _on_the_first_alone(program: Program) -> Iterator[Found]:
    """Steps of a schedule under a test that only the first rank passes."""
    ranks = Ranks(program)
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.Call) and method_of(node) == "step" and "sched" in owner_of(node).lower():
                firsts = ranks.on_first(node)
                if firsts and not others_do(node, ranks):
                    yield node, f"{ast.unparse(node)} only if {min(firsts)}"
