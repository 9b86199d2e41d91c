"""FL036: a ring in which every rank sends before it receives."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword
from ..ranks import Ranks
from ..readings import Reading
from ..scopes import Scope

RULE = Rule(
    "FL036",
    "ring-of-sends",
    "send() may wait until the other rank receives, and every rank of the ring is in its own send()",
    "dist.batch_isend_irecv([dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]), and wait for both",
    "collective-time-out",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program, ranks = reading.program, Ranks(reading.program)
    for scope in program.scopes:
        for node in scope.nodes:
            if not (isinstance(node, ast.Call) and program.names.called(node) == "torch.distributed.send"):
                continue
            to = keyword(node, "dst") or (node.args[1] if len(node.args) > 1 else None)
            if to is None or not _goes_round(to, scope) or ranks.may_leave_out(node, scope):
                continue
            others = [other for other in scope.nodes if isinstance(other, ast.Call) and other is not node]
            receives = [each for each in others if program.names.called(each) == "torch.distributed.recv"]
            if (
                receives
                and all(node.lineno < each.lineno for each in receives)
                and _same_tests(node, receives[0], ranks)
            ):
                yield node, f"send() to {ast.unparse(to)} on every rank, and recv() after it"


def _goes_round(to: ast.expr, scope: Scope) -> bool:
    """Whether a rank is counted on to the next one, and from the last to the first: `(rank + 1) % world_size`."""
    given = [node.value for node in scope.nodes if isinstance(node, ast.Assign) and ast.unparse(to) in _texts(node)]
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)
        for value in (to, *given)
        for part in ast.walk(value)
    )


def _texts(node: ast.Assign) -> list[str]:
    return [ast.unparse(target) for target in node.targets]


def _same_tests(node: ast.AST, other: ast.AST, ranks: Ranks) -> bool:
    return ranks.program.conditions(node) == ranks.program.conditions(other)
