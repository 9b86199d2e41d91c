"""FL023: gradients of several micro-batches, each of which DDP sends although only their sum is used."""

import re
from collections.abc import Iterator

from ..accumulation import accumulations
from ..finding import Found, Rule
from ..over_ranks import names_in, shares_gradients
from ..readings import Reading
from ..replicas import wrappers

RULE = Rule(
    "FL023",
    "accumulation-synced",
    "DDP sends all gradients in every backward(), and of these messages the last one alone is needed",
    "forward and backward of all micro-batches but the last inside `with model.no_sync():`",
    "no-sync-late",
)
# A file with one of these names decides by itself when gradients are sent, or leaves that to a library.
DECIDES = re.compile(r"no_sync|grad(ient)?s?_sync|sync_grad|^sync$|accelerat|deepspeed|nullcontext", re.IGNORECASE)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not shares_gradients(program) or not wrappers(program, True):
        return
    if any(DECIDES.search(name) for name in names_in(program)):
        return
    for scope in program.scopes:
        for each in accumulations(scope, program):
            yield each.backward, f"backward() of each of {each.number} micro-batches without no_sync()"
