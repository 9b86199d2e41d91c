"""FL035: a DistributedSampler that counts the GPUs of one machine, in a program for several."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword, last_name
from ..ranks import Ranks
from ..readings import Reading

RULE = Rule(
    "FL035",
    "sampler-of-one-machine",
    "with a second machine, each of them trains on the same rows: the numbers are those of one machine",
    "DistributedSampler(data), which asks the process group; or dist.get_world_size() and dist.get_rank()",
    "no-sampler",
)
LOCAL = re.compile(r"local_?rank", re.IGNORECASE)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if Ranks(program).started or not _joins_by_environment(program.tree):
        return  # processes that the file starts itself are on one machine
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.Call) and last_name(node) == "DistributedSampler":
                replicas, rank = keyword(node, "num_replicas"), keyword(node, "rank")
                if isinstance(replicas, ast.Call) and last_name(replicas) == "device_count":
                    yield replicas, "num_replicas=device_count() of a DistributedSampler"
                elif isinstance(rank, ast.Name | ast.Attribute) and LOCAL.search(last_name(rank)):
                    yield rank, f"rank={ast.unparse(rank)} of a DistributedSampler"


def _joins_by_environment(tree: ast.AST) -> bool:
    joins = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and last_name(node) == "init_process_group"]
    return any(keyword(node, "rank") is None for node in joins)
