"""FL033: the port at which the ranks meet, looked for by each of them."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import keyword, last_name
from ..readings import Reading

RULE = Rule(
    "FL033",
    "port-of-each-rank",
    "each process finds a free port of its own, and ranks that wait at different ports never meet",
    "find the port once, before the processes are started, and hand it to each of them",
    "key-never-written",
)
LOOKS = r"free_?port|find_?port|(un|not_)used_?port|open_?port|pick_?port|randint|randrange|getsockname"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    for scope in program.scopes:
        joins = [node for node in scope.nodes if last_name(node) == "init_process_group" and isinstance(node, ast.Call)]
        if not any(_is_one_of_several(node) for node in joins):
            continue
        for node in scope.nodes:
            if (
                isinstance(node, ast.Assign)
                and "MASTER_PORT" in ast.unparse(node.targets[0])
                and any(isinstance(part, ast.Call) and matches(LOOKS, last_name(part)) for part in ast.walk(node.value))
                and not program.conditions(node)
            ):
                yield node, f"MASTER_PORT is {ast.unparse(node.value)} in every process"


def _is_one_of_several(call: ast.Call) -> bool:
    """Whether a process joins with a rank that its caller gave it."""
    rank = keyword(call, "rank")
    return rank is not None and not isinstance(rank, ast.Constant)
