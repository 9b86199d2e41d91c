"""FL030: gradients of a model in FullyShardedDataParallel, clipped by the norm of this rank's shard."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..readings import Reading
from ..together import parallel_models

RULE = Rule(
    "FL030",
    "norm-of-a-shard",
    "it adds up the gradients that this rank holds, so each rank clips by a number of its own, and too little",
    "model.clip_grad_norm_(max_norm), the method of FullyShardedDataParallel, on every rank",
    "shard-norm",
)
UTILITIES = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if any(isinstance(node, ast.Attribute) and node.attr == "NO_SHARD" for node in ast.walk(program.tree)):
        return  # then a rank holds all gradients
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.Call) and program.names.called(node) in UTILITIES and node.args:
                for each in parallel_models(node, scope, program):
                    of_it = ast.unparse(node.args[0]) == f"{each.model}.parameters()"
                    if of_it and each.sharding is not None and not each.in_place:
                        yield (
                            node,
                            f"clip_grad_norm_() of {each.model}.parameters(), and line {each.node.lineno} shards it",
                        )
