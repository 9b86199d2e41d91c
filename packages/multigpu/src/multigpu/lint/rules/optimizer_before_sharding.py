"""FL015: an optimizer that is made before its model is sharded, and keeps the parameters that the model had then."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..readings import Reading
from ..scopes import Program, Scope
from ..sharded import Sharding, shardings

RULE = Rule(
    "FL015",
    "optimizer-before-sharding",
    "sharding makes new parameters and the optimizer keeps the old ones: step() changes nothing, without a word",
    "shard first, then make the optimizer from model.parameters()",
    "sharded-optimizer-first",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    for scope in program.scopes:
        sharded = [each for each in shardings(scope, program) if each.replaces]
        calls = [node for node in scope.nodes if isinstance(node, ast.Call)] if sharded else []
        made = [call for call in calls if _is_optimizer(call, program)]
        for node in made:
            texts = _models_in(node, scope)
            after = [each for each in sharded if each.model in texts and _later(each, node, program)]
            again = any(other.lineno > node.lineno and texts & _models_in(other, scope) for other in made)
            if after and not again:
                last = max(after, key=lambda each: each.node.lineno)
                yield (
                    node,
                    f"an optimizer of {last.model}.parameters(), and line {last.node.lineno} shards {last.model}",
                )


def _is_optimizer(node: ast.Call, program: Program) -> bool:
    name = program.names.called(node)
    made = name.startswith("torch.optim.") and "lr_scheduler" not in name and "swa_utils" not in name
    return made and name.rsplit(".", 1)[-1][:1].isupper()


def _later(sharding: Sharding, made: ast.Call, program: Program) -> bool:
    return sharding.node.lineno > made.lineno and not program.exclude_each_other(sharding.node, made)


def _models_in(made: ast.Call, scope: Scope) -> set[str]:
    """The models whose parameters an optimizer gets, in the call itself or by a name that holds them."""
    given: list[ast.AST] = [*made.args, *(each.value for each in made.keywords)]
    assigned = [node for node in scope.nodes if isinstance(node, ast.Assign) and node.lineno < made.lineno]
    for each in given:  # grows while it is read: a list of groups, the lists in it, and the values of their names
        names = {part.id for part in ast.walk(each) if isinstance(part, ast.Name)}
        given += [
            node.value
            for node in assigned
            if node.value not in given and not names.isdisjoint(map(ast.unparse, node.targets))
        ]
    return {
        ast.unparse(part.func.value)
        for each in given
        for part in ast.walk(each)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("parameters", "named_parameters")
    }
