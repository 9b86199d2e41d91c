"""FL020: a checkpoint that every rank writes to the same file."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword
from ..ranks import Ranks
from ..readings import Reading
from ..scopes import Scope

RULE = Rule(
    "FL020",
    "saved-by-every-rank",
    "all ranks write to one file at the same time, and what is left of it may be no checkpoint",
    "if dist.get_rank() == 0: torch.save(...), and a barrier() behind it where others read the file",
    "saved-by-every-rank",
)
# A path with one of these words in it may differ between ranks, and a buffer belongs to one process anyway.
OWN = re.compile(
    r"rank|process|proc_|pid|gpu|device|local|worker|shard|node|host|uuid|tmp|temp|Bytes|buf|stream|memory",
    re.IGNORECASE,
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if program.of_tests or not program.any_call("init_process_group"):
        return
    ranks = Ranks(program)
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.Call) and program.names.called(node) == "torch.save":
                path = node.args[1] if len(node.args) > 1 else keyword(node, "f")
                if path is not None and not _is_own(path, scope, ranks) and ranks.reaches_all(node, scope):
                    yield node, f"torch.save() to {ast.unparse(path)} without a test of the rank"


def _is_own(path: ast.expr, scope: Scope, ranks: Ranks) -> bool:
    """Whether a path may name a different file on every rank, by its text or by the values of its names."""
    texts, seen, waiting = [ast.unparse(path)], set(), [path]
    while waiting:
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Name | ast.Attribute) and (name := ast.unparse(part)) not in seen:
                seen.add(name)
                for value in _given(name, scope, ranks):
                    texts.append(ast.unparse(value))
                    waiting.append(value)
    return any(OWN.search(text) for text in texts)


def _given(name: str, scope: Scope, ranks: Ranks) -> Iterator[ast.expr]:
    """The values that a name may have: from the function, from the file, or as an argument of a call."""
    for other in ranks.program.scopes:
        for node in other.nodes:
            if isinstance(node, ast.Assign) and name in [ast.unparse(target) for target in node.targets]:
                yield node.value
            elif isinstance(node, ast.withitem) and node.optional_vars and ast.unparse(node.optional_vars) == name:
                yield node.context_expr
    if name in [given.arg for given in scope.parameters]:
        for call, _ in ranks.calls_of(scope):
            yield from (*call.args, *(each.value for each in call.keywords))
