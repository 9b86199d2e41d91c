"""FL034: a stream of data that is shared out over the workers of a loader, and not over the ranks."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name
from ..over_ranks import trains_over_ranks
from ..readings import Reading
from ..replicas import given_values
from ..scopes import Program
from .loader_without_sampler import RANK

RULE = Rule(
    "FL034",
    "stream-of-every-rank",
    "every rank has workers with the same numbers, so every rank trains on the whole stream",
    "share out over ranks and workers: number = rank * workers + worker, of world_size * workers",
    "no-sampler",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not trains_over_ranks(program):
        return
    for cls in ast.walk(program.tree):
        if not isinstance(cls, ast.ClassDef) or not any(last_name(base) == "IterableDataset" for base in cls.bases):
            continue
        shared = [part for part in ast.walk(cls) if isinstance(part, ast.Attribute) and part.attr == "num_workers"]
        if shared and not _tells_ranks_apart(cls) and not _is_given_a_rank(cls, program):
            yield shared[0], f"{cls.name} is shared out over workers alone"


def _tells_ranks_apart(cls: ast.ClassDef) -> bool:
    words = ("shard", "replica", "split_dataset", "process_index")
    text = ast.unparse(cls)
    return bool(RANK.search(text)) or any(word in text for word in words)


def _is_given_a_rank(cls: ast.ClassDef, program: Program) -> bool:
    """Whether an object of the class is made of what differs between ranks, as far as the file shows."""
    given = given_values(program)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call) and last_name(node) == cls.name:
            names = {last_name(part) for part in ast.walk(node)} - {""}
            texts = [ast.unparse(node), *(ast.unparse(value) for name in names for value in given.get(name, []))]
            if any(RANK.search(text) for text in texts):
                return True
    return False
