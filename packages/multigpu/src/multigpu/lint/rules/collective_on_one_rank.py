"""FL017: a collective that the first rank alone calls, which then waits for the others."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..libraries import gathered_state, of_accelerate
from ..names import FUNCTIONS, keyword, last_name, method_of, self_attribute
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
            if not isinstance(node, ast.Call):
                continue
            firsts = ranks.on_first(node) | {*_members_alone(node, ranks)}
            if not firsts:
                continue
            name = _waits(node, reading.program) or _gathered_weights(node, scope, ranks)
            name = name or shared_work(node, scope, reading.program)
            within = inside.get(_own_function(node, scope)) if not name else None
            called = name or (within[0] if within else "")
            if called and not _has_partner(node, called, scope, ranks) and not _after_the_end(node, scope):
                test = min(firsts)
                if within:
                    yield node, f"{last_name(node)}(), whose line {within[1]} calls {called}(), only if {test}"
                else:
                    yield node, f"{called}() only if {test}"


def _members_alone(node: ast.Call, ranks: Ranks) -> Iterator[str]:
    """The tests that let only the members of a new group reach the call that makes it."""
    if ranks.program.names.called(node) != "torch.distributed.new_group" or not node.args:
        return
    if keyword(node, "use_local_synchronization") is not None:
        return
    for test, held in ranks.led_to(node):
        match ast.parse(test, mode="eval").body:
            case ast.Compare(ops=[ast.In()], comparators=[members]) if held:
                if ast.unparse(members) == ast.unparse(node.args[0]):
                    yield test


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
    if _in_whole_state(node, model, program):
        return f"{model}.state_dict"
    wrapped = {each.model for each in parallel_models(node, scope, program) if each.sharding and not each.in_place}
    return f"{model}.state_dict" if model in wrapped else ""


def _in_whole_state(node: ast.Call, model: str, program: Program) -> bool:
    """Whether FSDP's own block around a call asks for the whole state of this model, whatever wrapped it."""
    withs = [above for above in program.around(node) if isinstance(above, ast.With)]
    blocks = [item.context_expr for above in withs for item in above.items]
    return any(
        isinstance(block, ast.Call)
        and last_name(block) == "state_dict_type"
        and any(last_name(given) == "FULL_STATE_DICT" for given in block.args)
        and ast.unparse(block.args[0]) == model
        for block in blocks
    )


def _functions_with_one(ranks: Ranks) -> dict[tuple[str, str], tuple[str, int]]:
    """The functions and methods of a file that call a collective whoever calls them: its name, and its line."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    keys = [_key(scope) for scope in ranks.program.scopes]
    for scope in ranks.program.scopes:
        if isinstance(scope.node, FUNCTIONS) and keys.count(_key(scope)) == 1:
            for node in scope.nodes:
                name = _waits(node, ranks.program)
                if name and not _conditions_inside(node, scope, ranks) and not ranks.may_leave_out(node, scope):
                    found.setdefault(_key(scope), (name, node.lineno))  # type: ignore[attr-defined]
    return found


def _key(scope: Scope) -> tuple[str, str]:
    return scope.cls.name if scope.cls is not None else "", scope.name


def _own_function(node: ast.Call, scope: Scope) -> tuple[str, str]:
    """The class and the name of what a call calls: a function of the file, or a method of the own class."""
    if isinstance(node.func, ast.Name):
        return "", node.func.id
    return scope.cls.name if scope.cls is not None else "?", self_attribute(node.func)


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
