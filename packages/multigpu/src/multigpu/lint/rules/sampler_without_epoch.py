"""FL016: a DistributedSampler that shuffles, in a loop over epochs that never sets its epoch."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from ..finding import Found, Rule
from ..habits import matches
from ..names import FUNCTIONS, AnyFunction, keyword, last_name
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL016",
    "sampler-without-epoch",
    "it shuffles by its seed and the number of the epoch, and nobody tells it the number: every epoch has one order",
    "sampler.set_epoch(epoch) at the beginning of every epoch, on every rank",
    "shuffle-repeated",
)
JUDGING = r"(^|_)(val|valid|validation|eval|evaluation|test|dev|infer|inference|predict)(_|set|data|loader|sampler|$)"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    made = [node for node in ast.walk(program.tree) if isinstance(node, ast.Call) and _shuffles(node, program)]
    if not made or _tells_epoch(program.tree) or program.any_call("Accelerator", "prepare_data_loader"):
        return
    fors = [node for node in ast.walk(program.tree) if isinstance(node, ast.For)]
    loops = [loop for loop in fors if _over_epochs(loop) and trains(loop, program)]
    for node in made:
        again = any(around in loops for around in program.around(node))
        if loops and not again and not judges(node, program):
            yield node, f"DistributedSampler() without set_epoch(), and a loop over epochs on line {loops[0].lineno}"


def _shuffles(node: ast.Call, program: Program) -> bool:
    """Whether a call makes a sampler of torch whose order is to change from epoch to epoch."""
    name = program.names.called(node)
    if not (name.startswith("torch.utils.data") and name.endswith(".DistributedSampler")):
        return False
    shuffle = keyword(node, "shuffle") or (node.args[3] if len(node.args) > 3 else None)
    seeded = any(each.arg in (None, "seed") for each in node.keywords)
    return not seeded and (shuffle is None or (isinstance(shuffle, ast.Constant) and shuffle.value is True))


def _tells_epoch(tree: ast.AST) -> bool:
    """Whether a file names `set_epoch`, or writes the epoch of something by hand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            by_hand = node.attr == "epoch" and isinstance(node.ctx, ast.Store) and "sampler" in ast.unparse(node.value)
            if node.attr == "set_epoch" or by_hand:
                return True
        elif isinstance(node, ast.Constant) and node.value == "set_epoch":
            return True
    return False


def _over_epochs(node: ast.For) -> bool:
    """Whether a loop is over several epochs."""
    if not isinstance(node.iter, ast.Call):
        return False
    text = f"{ast.unparse(node.target)} in {ast.unparse(node.iter)}".lower()
    return "epoch" in text and not text.endswith("in range(1)") and last_name(node.iter) in ("range", "trange", "tqdm")


def trains(loop: ast.For, program: Program) -> bool:
    """Whether this file trains on the batches of an epoch, so that a call of set_epoch would be in it."""
    functions = _functions(program)
    waiting: list[ast.AST] = [loop]
    seen: set[ast.AST] = set()
    while waiting:
        inside = waiting.pop()
        if inside in seen:
            continue
        seen.add(inside)
        for node in ast.walk(inside):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
                    return True
                if last_name(node) in functions:
                    waiting.append(functions[last_name(node)])
    return False


@lru_cache(maxsize=1)  # asked for every loop of a file
def _functions(program: Program) -> dict[str, AnyFunction]:
    return {node.name: node for node in ast.walk(program.tree) if isinstance(node, FUNCTIONS)}


def judges(made: ast.Call, program: Program) -> bool:
    """Whether a sampler is that of an evaluation, by the names of its data, of itself or of its function."""
    names = [part for given in made.args[:1] for part in _names(given)]
    for above in program.around(made):
        if isinstance(above, ast.Assign):
            names += [part for target in above.targets for part in _names(target)]
        elif isinstance(above, FUNCTIONS):
            names.append(above.name)
            break
    return any(matches(JUDGING, name) for name in names)


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            yield last_name(part)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
