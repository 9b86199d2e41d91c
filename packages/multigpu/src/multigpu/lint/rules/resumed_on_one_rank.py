"""FL039: the state of an optimizer or a schedule that the first rank alone reads from a checkpoint."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import FUNCTIONS, last_name, method_of, owner_of
from ..over_ranks import names_in, shares_gradients
from ..ranks import Ranks
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL039",
    "resumed-on-one-rank",
    "DDP sends the weights of the first rank and nothing else: the others go on with an optimizer that is new",
    "torch.load and load_state_dict on every rank, with map_location",
)
STATES = r"optim|sched|scaler|(^|_)opt($|_)"
# A file with one of these names may send the state on by itself.
SENDS = re.compile(r"broadcast|scatter|consolidate|shard|optim_state_dict|set_state_dict|deepspeed", re.IGNORECASE)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program, ranks = reading.program, Ranks(reading.program)
    if not shares_gradients(program) or any(SENDS.search(name) for name in names_in(program)):
        return
    readers = _readers(program)
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.Call) and (_reads(node) or last_name(node) in readers):
                firsts = ranks.on_first(node)
                if firsts and not others_do(node, ranks):
                    name = ast.unparse(node.func)
                    yield node, f"{name}() only if {min(firsts)}"


def _reads(node: ast.AST) -> bool:
    """Whether a call gives an optimizer, a schedule or a scaler its state."""
    return method_of(node) == "load_state_dict" and matches(STATES, owner_of(node))


def _readers(program: Program) -> set[str]:
    """The functions and methods of the file with such a call, by names that the file gives once."""
    names = [scope.name for scope in program.scopes]
    return {
        scope.name
        for scope in program.scopes
        if isinstance(scope.node, FUNCTIONS)
        and names.count(scope.name) == 1
        and scope.name != "load_state_dict"
        and any(_reads(node) for node in scope.nodes)
    }


def others_do(node: ast.Call, ranks: Ranks) -> bool:
    """Whether another branch has something for the other ranks."""
    below: ast.AST = node
    for above in ranks.program.around(node):
        if isinstance(above, ast.If) and below in above.body and above.orelse:
            return True
        below = above
    return any(True for leaving in ranks.left_before(node) for _ in leaving.body[:-1])
