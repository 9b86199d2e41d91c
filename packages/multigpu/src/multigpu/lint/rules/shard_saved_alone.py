"""FL029: the state of a model that fully_shard has sharded, asked for by one rank, which has its shard alone."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import method_of
from ..ranks import Ranks
from ..readings import Reading
from ..together import parallel_models

RULE = Rule(
    "FL029",
    "shard-saved-alone",
    "its tensors are DTensors, of which a rank holds its own rows: the file lacks those of all other ranks",
    "get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)) on every rank, "
    "and torch.save on the first; or torch.distributed.checkpoint",
    "whole-state-dict",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program, ranks = reading.program, Ranks(reading.program)
    for scope in program.scopes:
        for node in scope.nodes:
            if method_of(node) != "state_dict" or not isinstance(node, ast.Call) or node.args or node.keywords:
                continue
            model = ast.unparse(node.func.value)  # type: ignore[attr-defined]
            sharded = {each.model for each in parallel_models(node, scope, program) if each.in_place}
            if model in sharded and (firsts := ranks.on_first(node)):
                yield node, f"{model}.state_dict() of a sharded model, only if {min(firsts)}"
