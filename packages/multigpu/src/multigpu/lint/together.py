"""Find what the ranks of a model do together: its backward, and for a sharded model its forward and its clipping.

A forward of DistributedDataParallel is left out. It only sends buffers, if there are any, so a rank may call it alone.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .names import last_name, method_of
from .scopes import Program, Scope
from .sharded import Sharding, shardings
from .wrappers import is_distributed, is_wrapper


class Parallel(NamedTuple):
    """A model that several ranks train: the text that names it, and the line that made it so."""

    node: ast.Call
    model: str
    sharding: Sharding | None  # None for DistributedDataParallel

    @property
    def in_place(self) -> bool:
        return self.sharding is not None and self.sharding.in_place


def shared_work(node: ast.Call, scope: Scope, program: Program) -> str:
    """The text of a call that needs every rank of a model, such as `model` or `loss.backward`; "" for any other."""
    models = parallel_models(node, scope, program)
    if any(each.sharding is not None and ast.unparse(node.func) == each.model for each in models):
        return ast.unparse(node.func)
    if any(_clips(node, each) for each in models):
        return ast.unparse(node.func)
    if method_of(node) == "backward" and isinstance(node.func, ast.Attribute) and not _inside(node, program, "no_sync"):
        computed = _came_from(node.func.value, node.lineno, scope)
        if any(_forward_before(part, node, models, program) for value in computed for part in ast.walk(value)):
            return ast.unparse(node.func)
    return ""


def parallel_models(node: ast.Call, scope: Scope, program: Program) -> list[Parallel]:
    """The models that a function, or a different method of its class, has wrapped or sharded before a call."""
    return [each for each in _models(scope, program) if _still_so(each, node, scope, program)]


def _models(scope: Scope, program: Program) -> Iterator[Parallel]:
    yield from _made_in(scope, program)
    if scope.cls is None:
        return
    for other in program.scopes:
        if other is not scope and other.cls is scope.cls:
            yield from (each for each in _made_in(other, program) if each.model.startswith("self."))


def _made_in(scope: Scope, program: Program) -> Iterator[Parallel]:
    sharded = {each.node: each for each in shardings(scope, program) if each.in_place or not _in_group(each.node)}
    yield from (Parallel(each.node, each.model, each) for each in sharded.values() if each.in_place)
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            made, name = program.names.called(node.value), ast.unparse(node.targets[0])
            if node.value in sharded and not sharded[node.value].in_place:
                yield Parallel(node.value, name, sharded[node.value])
            elif is_wrapper(made) and is_distributed(node.value, program.names) and not _in_group(node.value):
                yield Parallel(node.value, name, None)


def _in_group(wrapper: ast.Call) -> bool:
    """Whether a wrapper gets a group, or may get one: in a group of one rank nobody waits."""
    return any(given.arg in (None, "process_group", "device_mesh") for given in wrapper.keywords)


def _still_so(parallel: Parallel, node: ast.Call, scope: Scope, program: Program) -> bool:
    """Whether a name still holds the wrapped model at the line that uses it, as far as the lines show."""
    if program.exclude_each_other(parallel.node, node):
        return False
    here = parallel.node in scope.nodes
    if here and parallel.node.lineno >= node.lineno:
        return False
    since = parallel.node.lineno if here else 0
    return not any(
        isinstance(other, ast.Assign | ast.For)
        and since <= other.lineno < node.lineno
        and (isinstance(other, ast.For) or other.value is not parallel.node)
        and parallel.model in _targets(other)
        for other in scope.nodes
    )


def _targets(node: ast.Assign | ast.For) -> set[str]:
    """The texts of the targets of an assignment or a loop."""
    targets = [node.target] if isinstance(node, ast.For) else node.targets
    return {ast.unparse(part) for target in targets for part in ast.walk(target)}


def _clips(node: ast.Call, parallel: Parallel) -> bool:
    """Whether a call clips the gradients of a sharded model, for which the ranks add up its norm."""
    if method_of(node) != "clip_grad_norm_" or not isinstance(node.func, ast.Attribute):
        return False
    if parallel.in_place:
        return bool(node.args) and ast.unparse(node.args[0]) == f"{parallel.model}.parameters()"
    return parallel.sharding is not None and ast.unparse(node.func.value) == parallel.model


def _inside(node: ast.AST, program: Program, *blocks: str) -> bool:
    """Whether a node is inside a `with` of one of these names."""
    withs = [above for above in program.around(node) if isinstance(above, ast.With)]
    return any(last_name(item.context_expr) in blocks for above in withs for item in above.items)


def _came_from(value: ast.expr, line: int, scope: Scope) -> list[ast.expr]:
    """An expression, and the last values before a line of the names in it, of the names in those values, and so on.

    A detached value is left out, because no gradient goes back through it.
    """
    given = _last_given(line, scope)
    found: list[ast.expr] = [value]
    seen: set[str] = set()
    for each in found:  # grows while it is read
        for part in ast.walk(each):
            if isinstance(part, ast.Name) and part.id in given and part.id not in seen:
                seen.add(part.id)
                if "detach" not in ast.unparse(given[part.id]):
                    found.append(given[part.id])
    return found


def _last_given(line: int, scope: Scope) -> dict[str, ast.expr]:
    """The last value before a line of each name of a function."""
    given: dict[str, ast.expr] = {}
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and node.lineno < line:
            for target in node.targets:
                given.update({part.id: node.value for part in ast.walk(target) if isinstance(part, ast.Name)})
    return given


def _forward_before(part: ast.AST, backward: ast.Call, models: list[Parallel], program: Program) -> bool:
    """Whether a part of a loss is a forward that the backward goes through, and that is not a finding itself."""
    if not isinstance(part, ast.Call) or _inside(part, program, "no_grad", "inference_mode"):
        return False
    if any(method_of(above) == "detach" for above in program.around(part)):
        return False
    called = [each for each in models if ast.unparse(part.func) == each.model]
    alone = program.conditions(part) >= program.conditions(backward)
    return any(each.sharding is None or not alone for each in called)
