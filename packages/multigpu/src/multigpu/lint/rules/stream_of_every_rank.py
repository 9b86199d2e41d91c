"""FL034: a stream of data that is not shared out over the ranks, or over the workers of a loader alone."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import FUNCTIONS, last_name
from ..over_ranks import names_in, trains_over_ranks
from ..readings import Reading
from ..replicas import given_values
from ..scopes import Program
from .loader_without_sampler import RANK

RULE = Rule(
    "FL034",
    "stream-of-every-rank",
    "nothing in it differs between ranks, so every rank trains on the whole stream",
    "share out over ranks and workers: number = rank * workers + worker, of world_size * workers",
    "no-sampler",
)
KNOWN = {"fully_shard", "FullyShardedDataParallel", "split"}  # the method of a text


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not trains_over_ranks(program):
        return
    for cls in ast.walk(program.tree):
        if not isinstance(cls, ast.ClassDef) or not any(last_name(base) == "IterableDataset" for base in cls.bases):
            continue
        shared = [part for part in ast.walk(cls) if isinstance(part, ast.Attribute) and part.attr == "num_workers"]
        if _tells_ranks_apart(cls) or _is_given_a_rank(cls, program):
            continue
        if shared:
            yield shared[0], f"{cls.name} is shared out over workers alone"
        elif _is_read_from_the_start(cls) and not _is_shared_out(program):
            yield cls, f"{cls.name} is not shared out"


def _is_read_from_the_start(cls: ast.ClassDef) -> bool:
    """Whether a stream has a loop of its own, and no order that chance gives it."""
    reads = any(isinstance(item, FUNCTIONS) and item.name == "__iter__" for item in cls.body)
    loops = any(isinstance(part, ast.For) for part in ast.walk(cls))
    return reads and loops and not re.search("rand|seed|shuffle|choice|perm", ast.unparse(cls))


def _is_shared_out(program: Program) -> bool:
    """Whether a library or a function of the file may share a stream out from outside."""
    return any(
        re.search(r"shard|split|sampler|accelerat|deepspeed|lightning", name, re.I)
        for name in names_in(program) - KNOWN
    )


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
