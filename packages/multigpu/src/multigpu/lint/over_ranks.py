"""Files in which several ranks train one model on different rows, and the names that such a file uses."""

import ast
from functools import lru_cache

from .names import FUNCTIONS
from .replicas import wrappers
from .scopes import Program
from .values import words

# Of models in which several ranks work on the same rows.
OTHER_WAYS = words("parallelize_module PipelineStage pipeline ScheduleGPipe Schedule1F1B context_parallel")


def trains_over_ranks(program: Program) -> bool:
    """Whether a file joins a process group, shares the gradients of a model out, and goes backward."""
    return shares_gradients(program) and program.any_call("init_process_group") and program.any_call("backward")


def shares_gradients(program: Program) -> bool:
    """Whether a file gives a model to DDP or shards it, so that ranks with different rows train it together."""
    if program.of_tests or program.any_call(*OTHER_WAYS):
        return False
    return program.any_call("fully_shard", "FullyShardedDataParallel", "FSDP") or bool(wrappers(program, True))


@lru_cache(maxsize=1)  # several rules ask, one after the other
def names_in(program: Program) -> frozenset[str]:
    """Every name that a file uses: of variables, attributes, arguments, functions, classes and imports."""
    found: set[str] = set()
    for node in ast.walk(program.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.keyword(arg=str() as name):
                found.add(name)
            case ast.alias(name=name):
                found.update(name.split("."))
            case _ if isinstance(node, FUNCTIONS):
                found.add(node.name)
    return frozenset(found)
