"""FL017: a collective that the first rank alone calls, which then waits for the others."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..libraries import gathered_state, of_accelerate
from ..names import FUNCTIONS, last_name, method_of
from ..ranks import Ranks, collective
from ..readings import Reading
from ..scopes import Program, Scope
from ..together import parallel_models, shared_work

RULE = Rule(
    "FL017",
    "collective-on-one-rank",
    "it waits until every rank has called it, and the others pass by: the run hangs until the time-out",
    "call it on every rank, outside of the test, and keep under the test what only one rank has to do",
    "collective-time-out",
)

IN_SHARDS = ("SHARDED_STATE_DICT", "LOCAL_STATE_DICT", "summon_full_params")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    ranks = Ranks(reading.program)
    inside = _functions_with_one(ranks)
    for scope in reading.program.scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Call) or not (firsts := ranks.on_first(node)):
                continue
            name = _waits(node, reading.program) or _gathered_weights(node, scope, ranks)
            name = name or shared_work(node, scope, reading.program)
            within = inside.get(node.func.id) if isinstance(node.func, ast.Name) and not name else None
            called = name or (within[0] if within else "")
            if called and not _has_partner(node, called, scope, ranks) and not _after_the_end(node, scope):
                test = min(firsts)
                if within:
                    yield node, f"{last_name(node)}(), whose line {within[1]} calls {called}(), only if {test}"
                else:
                    yield node, f"{called}() only if {test}"


def _waits(node: ast.AST, program: Program) -> str:
    """The function that a call calls, if it waits for every rank whatever its arguments are, else ""."""
    return collective(node, program) or of_accelerate(node, program) or gathered_state(node, program)


def _gathered_weights(node: ast.Call, scope: Scope, ranks: Ranks) -> str:
    """`model.state_dict` of a model in FullyShardedDataParallel, which gathers all weights by default."""
    if method_of(node) != "state_dict" or not isinstance(node.func, ast.Attribute):
        return ""
    model, program = ast.unparse(node.func.value), ranks.program
    if any(isinstance(part, ast.Attribute) and part.attr in IN_SHARDS for part in ast.walk(program.tree)):
        return ""
    wrapped = {each.model for each in parallel_models(node, scope, program) if each.sharding and not each.in_place}
    return f"{model}.state_dict" if model in wrapped else ""


def _functions_with_one(ranks: Ranks) -> dict[str, tuple[str, int]]:
    """The functions of a file that call a collective whoever calls them: its name, and its line."""
    found: dict[str, tuple[str, int]] = {}
    names = [scope.name for scope in ranks.program.scopes]
    for scope in ranks.program.scopes:
        if scope.cls is None and isinstance(scope.node, FUNCTIONS) and names.count(scope.name) == 1:
            for node in scope.nodes:
                name = _waits(node, ranks.program)
                if name and not _conditions_inside(node, scope, ranks) and not ranks.may_leave_out(node, scope):
                    found.setdefault(scope.name, (name, node.lineno))  # type: ignore[attr-defined]
    return found


def _conditions_inside(node: ast.AST, scope: Scope, ranks: Ranks) -> bool:
    """Whether a node is under a condition of its own function, or in a loop, whose body may never run."""
    for above in ranks.program.around(node):
        if above is scope.node:
            return False
        if isinstance(above, ast.If | ast.IfExp | ast.Try | ast.While | ast.BoolOp):
            return True
    return False


def _has_partner(node: ast.Call, called: str, scope: Scope, ranks: Ranks) -> bool:
    """Whether the other ranks may call the same collective in another branch, so that all of them call it."""
    mine = _rank_tests(node, ranks)
    for other in scope.nodes:
        if other is not node and isinstance(other, ast.Call) and last_name(other) in (called, last_name(node)):
            theirs = _rank_tests(other, ranks)
            if theirs and theirs != mine:
                return True
    below: ast.AST = node
    for above in ranks.program.around(node):
        if isinstance(above, ast.If) and below in above.body and any(_may_call_it(part) for part in above.orelse):
            return True
        below = above
    return any(_may_call_it(part) for leaving in ranks.left_before(node) for part in leaving.body)


def _rank_tests(node: ast.AST, ranks: Ranks) -> set[tuple[str, bool]]:
    return {(test, held) for test, held in ranks.led_to(node) if ranks.may_ask(test)}


def _may_call_it(branch: ast.AST) -> bool:
    """Whether the other branch calls anything but a print."""
    calls = [last_name(node) for node in ast.walk(branch) if isinstance(node, ast.Call)]
    return any(name not in ("print", "info", "debug", "warning", "log") for name in calls)


def _after_the_end(node: ast.Call, scope: Scope) -> bool:
    """Whether the process group has been left before."""
    return any(
        isinstance(other, ast.Call) and last_name(other) == "destroy_process_group" and other.lineno < node.lineno
        for other in scope.nodes
    )
