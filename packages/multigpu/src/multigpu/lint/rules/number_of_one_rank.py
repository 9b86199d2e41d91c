"""FL025: a loss or an accuracy of one rank's rows that is printed or logged as if it were that of all."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import last_name, method_of
from ..over_ranks import names_in, trains_over_ranks
from ..readings import Reading
from ..scopes import Scope

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
    for scope in program.scopes:
        numbers = _numbers(scope)
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


def _numbers(scope: Scope) -> set[str]:
    """The names of a function that are made of the numbers of tensors."""
    found: set[str] = set()
    for node in scope.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign) and any(_named(node.value, found)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found.add(ast.unparse(target))
    return {name for name in found if matches(NUMBER, name)}


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
