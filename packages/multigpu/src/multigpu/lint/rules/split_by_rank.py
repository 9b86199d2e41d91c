"""FL031: data that each rank splits at random by a seed of its own."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword, last_name
from ..readings import Reading
from ..scopes import Scope
from .loader_without_sampler import RANK, SEEDS

RULE = Rule(
    "FL031",
    "split-by-rank",
    "the seed differs between ranks, so does the split, and what one rank holds back others train on",
    "random_split(data, lengths, generator=torch.Generator().manual_seed(seed)), with one seed for all ranks",
)
SEED = (*SEEDS, "fix_seed", "set_random_seed")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    for scope in program.scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Call) or not program.names.called(node).endswith("random_split"):
                continue
            if len(node.args) < 3 and keyword(node, "generator") is None and (seed := _last_seed(node, scope)):
                yield node, f"random_split() without a generator, after {seed}"


def _last_seed(node: ast.Call, scope: Scope) -> str:
    """The last call that seeds before a line, if what it is given has a rank in it, else ""."""
    before = [
        other
        for other in scope.nodes
        if isinstance(other, ast.Call) and last_name(other) in SEED and other.lineno < node.lineno
    ]
    given = [*before[-1].args, *(each.value for each in before[-1].keywords)] if before else []
    return ast.unparse(before[-1]) if any(RANK.search(ast.unparse(each)) for each in given) else ""
