"""The lines of a function that shard a model: with `fully_shard`, or with the wrapper FullyShardedDataParallel."""

import ast
from typing import NamedTuple

from .names import FUNCTIONS, keyword
from .scopes import Program, Scope


class Sharding(NamedTuple):
    """A line that shards a model, and the text that names the model."""

    node: ast.Call
    model: str
    in_place: bool  # by fully_shard, which puts no wrapper around it
    replaces: bool  # its parameters, for certain


def shardings(scope: Scope, program: Program) -> list[Sharding]:
    """The lines of a function that shard a model, or that call a function of the file which shards its argument."""
    found = []
    for node in scope.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = program.names.called(node)
        if _is_fully_shard(name):
            model = node.args[0] if node.args else keyword(node, "module")
            if isinstance(model, ast.Name | ast.Attribute):
                found.append(Sharding(node, ast.unparse(model), True, True))
        elif name.startswith("torch.distributed.fsdp") and name.endswith(".FullyShardedDataParallel"):
            kept = keyword(node, "use_orig_params")
            default = kept is None and all(each.arg for each in node.keywords)
            replaces = default or (isinstance(kept, ast.Constant) and kept.value is False)
            if node.args:
                found.append(Sharding(node, ast.unparse(node.args[0]), False, replaces))
        elif isinstance(node.func, ast.Name):
            for position in _sharded_arguments(node.func.id, program):
                if position < len(node.args) and isinstance(node.args[position], ast.Name | ast.Attribute):
                    found.append(Sharding(node, ast.unparse(node.args[position]), True, True))
    return found


def _is_fully_shard(name: str) -> bool:
    return name.startswith("torch.distributed.") and name.endswith(".fully_shard")


def _sharded_arguments(called: str, program: Program) -> set[int]:
    """The positions of the arguments that a function of this file always passes to fully_shard."""
    functions = [scope for scope in program.named(called) if isinstance(scope.node, FUNCTIONS)]
    if len(functions) != 1 or functions[0].cls is not None:
        return set()
    arguments = [given.arg for given in functions[0].node.args.args]  # type: ignore[union-attr]
    return {
        arguments.index(node.args[0].id)
        for node in functions[0].nodes
        if isinstance(node, ast.Call)
        and _is_fully_shard(program.names.called(node))
        and node.args
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in arguments
        and not program.conditions(node)
    }
