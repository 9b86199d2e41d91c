"""FL021: a DataLoader that every rank reads from its first row to its last."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import FUNCTIONS, keyword, last_name, plain_names
from ..over_ranks import names_in, trains_over_ranks
from ..ranks import Ranks
from ..readings import Reading
from ..scopes import Program, Scope
from .sampler_without_epoch import judges, trains

RULE = Rule(
    "FL021",
    "loader-without-sampler",
    "nothing gives each rank rows of its own, so every rank trains on all of them, and more GPUs save no time",
    "DataLoader(data, sampler=DistributedSampler(data)), without shuffle, and sampler.set_epoch(epoch) in each epoch",
    "no-sampler",
)
# A file with one of these names may give each rank its rows in a different way.
DIVIDES = re.compile(
    r"sampler|iterable|webdataset|^wds$|streaming|split_dataset|^(get_)?shards?$|(num|n|data|dataset)_shards?$"
    r"|shard_(id|index)|accelerat|num_replicas|^dali|ffcv|deepspeed|lightning",
    re.IGNORECASE,
)
RANK = re.compile(r"rank|world", re.IGNORECASE)
SIZES = ("batch_size", "num_workers")  # divided by the number of ranks, they give each rank the same rows as before
SEEDS = ("manual_seed", "manual_seed_all", "seed", "seed_everything", "set_seed", "default_rng")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not trains_over_ranks(program) or any(DIVIDES.search(name) for name in names_in(program)):
        return
    if any(last_name(node) in SEEDS and RANK.search(ast.unparse(node)) for node in _calls(program.tree)):
        return  # each rank draws an order of its own
    trained, ranks = _trained_on(program), Ranks(program)
    for scope in program.scopes:
        for node in scope.nodes:
            if not (isinstance(node, ast.Call) and program.names.called(node).endswith("data.DataLoader")):
                continue
            if _reads_all(node, scope, trained, program) and not ranks.may_leave_out(node, scope):
                yield node, "DataLoader() without a sampler, in a file that trains on several ranks"


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _reads_all(made: ast.Call, scope: Scope, trained: set[str], program: Program) -> bool:
    """Whether a loader is trained on, and nothing about it differs between ranks."""
    if any(each.arg in (None, "generator") for each in made.keywords) or not made.args + made.keywords:
        return False
    targets = _targets(made, program)
    data = made.args[0] if made.args else keyword(made, "dataset")
    if data is None or judges(made, program) or not trained & targets:
        return False
    names = plain_names(data)
    given = [node.value for node in scope.nodes if isinstance(node, ast.Assign) and names & _names(node.targets)]
    said = [each.value for each in made.keywords if each.arg not in SIZES]
    return not any(RANK.search(ast.unparse(each)) for each in (*made.args[:1], *said, *given))


def _targets(made: ast.Call, program: Program) -> set[str]:
    """The names that a loader is given where it is made, or where its function is called, and that of the function."""
    for above in program.around(made):
        if isinstance(above, ast.Assign):
            return _names(above.targets)
        if isinstance(above, FUNCTIONS):
            called = [node for node in ast.walk(program.tree) if isinstance(node, ast.Assign)]
            made_by = [_names(node.targets) for node in called if last_name(node.value) == above.name]
            return {above.name}.union(*made_by)
    return set()


def _names(targets: list[ast.expr]) -> set[str]:
    return {last_name(part) for target in targets for part in ast.walk(target)} - {""}


def _trained_on(program: Program) -> set[str]:
    """The names in what the loops that train run over, and what is given to the functions with such loops."""
    loops = [node for node in ast.walk(program.tree) if isinstance(node, ast.For) and trains(node, program)]
    found = {last_name(part) for loop in loops for part in ast.walk(loop.iter)}
    inside = {each.name for loop in loops for each in program.around(loop) if isinstance(each, FUNCTIONS)}
    classes = {each.name for loop in loops for each in program.around(loop) if isinstance(each, ast.ClassDef)}
    for call in _calls(program.tree):
        if last_name(call) in inside | classes:
            found |= {last_name(given) for given in (*call.args, *(each.value for each in call.keywords))}
    return found - {""}
