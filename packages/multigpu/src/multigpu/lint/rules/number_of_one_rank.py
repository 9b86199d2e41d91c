"""FL025: a loss or an accuracy of one rank's rows that is printed or logged as if it were that of all."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import last_name, method_of, plain_names
from ..over_ranks import names_in, trains_over_ranks
from ..readings import Reading
from ..scopes import Program, Scope
from .sampler_without_epoch import judges

RULE = Rule(
    "FL025",
    "number-of-one-rank",
    "it is of this rank's rows alone, and no line of the file brings the ranks' numbers together",
    "dist.all_reduce(loss.detach(), dist.ReduceOp.AVG) on every rank, before it is printed; or say whose it is",
    "metric-not-reduced",
)
NUMBER = r"loss|acc(uracy)?(_|$|\d)|correct|error|perplexity|(^|_)(map|auc|f1|iou|bleu)(_|$)"
# A file with one of these names may bring the numbers together.
TOGETHER = re.compile(r"reduce|gather|sync|metric|averagemeter|broadcast|accelerat", re.IGNORECASE)
LOGS = ("print", "add_scalar", "log", "info", "set_postfix", "set_description", "log_metrics")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not trains_over_ranks(program) or any(TOGETHER.search(name) for name in names_in(program)):
        return
    judging = _judging(program) if _judges_shares(program) else set()
    for scope in program.scopes:
        numbers = _numbers(scope, judging)
        for node in scope.nodes:
            if (
                isinstance(node, ast.Call)
                and last_name(node) in LOGS
                and not re.search("rank", ast.unparse(node), re.I)
            ):
                told = [name for given in _given(node) for name in _named(given, numbers)]
                if told:
                    yield node, f"{told[0]} of one rank in {last_name(node)}()"


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (each.value for each in call.keywords)


def _judges_shares(program: Program) -> bool:
    """Whether each rank judges its own share of the data."""
    calls = (node for node in ast.walk(program.tree) if isinstance(node, ast.Call))
    return any(last_name(node) == "DistributedSampler" and judges(node, program) for node in calls)


def _judging(program: Program) -> set[str]:
    """The functions of the file that add up numbers of tensors and return what they make of them."""
    return {
        scope.name
        for scope in program.scopes
        for node in scope.nodes
        if isinstance(node, ast.Return) and node.value is not None and plain_names(node.value) & _summed(scope)
    }


def _summed(scope: Scope) -> set[str]:
    """The names that a function adds `.item()` up in."""
    return {
        ast.unparse(node.target)
        for node in scope.nodes
        if isinstance(node, ast.AugAssign) and any(method_of(part) == "item" for part in ast.walk(node.value))
    }


def _numbers(scope: Scope, judging: set[str]) -> set[str]:
    """The names of a function that are made of the numbers of tensors, or that a function which judges returns."""
    found: set[str] = set()
    for node in scope.nodes:
        if not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_named(node.value, found)) or (isinstance(node.value, ast.Call) and last_name(node.value) in judging):
            sums = {ast.unparse(node.target)} if isinstance(node, ast.AugAssign) else set()
            named = {ast.unparse(part) for target in targets for part in ast.walk(target)}
            found |= sums | {name for name in named if matches(NUMBER, name)}
    return found


def _named(value: ast.AST, numbers: set[str]) -> Iterator[str]:
    """The numbers in an expression: `loss.item()`, `float(loss)`, or a name made of one."""
    for part in ast.walk(value):
        owner = part.func.value if method_of(part) == "item" else None  # type: ignore[attr-defined]
        if isinstance(part, ast.Call) and last_name(part) == "float" and part.args:
            owner = part.args[0]
        if isinstance(owner, ast.Name | ast.Attribute) and matches(NUMBER, last_name(owner)):
            yield ast.unparse(owner)
        elif isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) in numbers:
            yield ast.unparse(part)
