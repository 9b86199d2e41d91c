"""FL019: `.module` of a model that fully_shard has sharded, which puts no wrapper around it."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..readings import Reading
from ..scopes import Program, Scope
from ..sharded import Sharding, shardings
from .missing_module import told_apart

RULE = Rule(
    "FL019",
    "module-of-sharded",
    "fully_shard changes the model in place and puts no wrapper around it: AttributeError",
    "model.name, without .module",
    "module-of-sharded",
)
WRAPPERS = ("DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "DeepSpeedEngine")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if program.any_call(*WRAPPERS, "prepare") or _defines_module(program):
        return
    for scope in program.scopes:
        sharded = [each for each in shardings(scope, program) if each.in_place]
        known = told_apart(scope) if sharded else set()
        for node in scope.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "module" and isinstance(node.ctx, ast.Load):
                for each in sharded:
                    if _is_it(node, each, program, scope) and each.model not in known:
                        yield node, f"{each.model}.module, and line {each.node.lineno} shards {each.model} in place"
                        break


def _is_it(node: ast.Attribute, sharding: Sharding, program: Program, scope: Scope) -> bool:
    """Whether `.module` is of a model that was sharded before, whose name was not assigned again since."""
    if ast.unparse(node.value) != sharding.model or node.lineno <= sharding.node.lineno:
        return False
    given_since = any(
        isinstance(other, ast.Assign)
        and sharding.node.lineno < other.lineno <= node.lineno
        and sharding.model in [ast.unparse(target) for target in other.targets]
        for other in scope.nodes
    )
    return not given_since and not program.exclude_each_other(sharding.node, node)


def _defines_module(program: Program) -> bool:
    """Whether a class of the file has an attribute `module` of its own."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "module" and isinstance(node.ctx, ast.Store)
        for node in ast.walk(program.tree)
    )
