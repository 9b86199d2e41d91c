"""FL022: gradients of several micro-batches that are added up, and a mean that nothing divides by their number."""

import ast
from collections.abc import Iterator

from ..accumulation import Accumulation, accumulations
from ..finding import Found, Rule
from ..habits import matches
from ..names import keyword, last_name
from ..over_ranks import names_in
from ..readings import Reading
from ..replicas import given_values, wrappers
from ..scopes import Program, Scope

RULE = Rule(
    "FL022",
    "accumulation-unscaled",
    "backward() adds up, so the gradient is that of one batch times their number, and clipping and decay see that",
    "(loss / number).backward(), or one division by all rows or tokens of the step",
    "accumulation-scale",
)
PARTS = r"micro|accum"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not (wrappers(program, True) or wrappers(program, False)):
        return
    divisors = {ast.unparse(each) for each in _divisors(program.tree)}
    for scope in program.scopes:
        for each in accumulations(scope, program):
            if not (each.by_test or matches(PARTS, each.number)) or not _is_mean(each, scope, program):
                continue  # the losses of several tasks are added up on purpose
            if not {each.number, each.number.rsplit(".", 1)[-1]} & divisors:
                what = f"the mean of each of {each.number} micro-batches, and no division by {each.number}"
                yield each.backward, what


def _divisors(tree: ast.AST) -> Iterator[ast.expr]:
    """Everything that the file divides by, also by `1 / n` and `.div(n)`, and what it multiplies gradients with."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Div(), right=by) | ast.AugAssign(op=ast.Div(), value=by):
                yield by
            case ast.Call(func=ast.Attribute(attr="div" | "div_"), args=[by, *_]):
                yield by


def _is_mean(each: Accumulation, scope: Scope, program: Program) -> bool:
    """Whether the loss is the mean of a loss of torch, as it came out of it, and gradients are left as they are."""
    if "grad" in names_in(program):
        return False  # they may be divided later
    loss = each.backward.func.value if isinstance(each.backward.func, ast.Attribute) else None
    if isinstance(loss, ast.Call) and last_name(loss) == "scale" and loss.args:  # of a GradScaler
        loss = loss.args[0]
    if not isinstance(loss, ast.Name):
        return False
    given = [
        node
        for node in scope.nodes
        if isinstance(node, ast.Assign | ast.AugAssign)
        and loss.id in _texts(node)
        and node.lineno < each.backward.lineno
    ]
    return len(given) == 1 and isinstance(given[0], ast.Assign) and _mean_of_torch(given[0].value, program)


def _texts(node: ast.Assign | ast.AugAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [ast.unparse(part) for target in targets for part in ast.walk(target)]


def _mean_of_torch(value: ast.expr, program: Program) -> bool:
    """Whether it is a loss of torch that takes the mean: a function, or an object that the file has made."""
    if not isinstance(value, ast.Call):
        return False
    name = program.names.called(value)
    if name.startswith("torch.nn.functional.") and ("loss" in name or "entropy" in name):
        return _reduces_to_mean(value)
    made = given_values(program).get(last_name(value), [])
    return bool(made) and all(_is_loss(each, program) for each in made)


def _is_loss(made: ast.expr, program: Program) -> bool:
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and last_name(made) in ("to", "cuda"):
        made = made.func.value
    name = program.names.called(made)
    is_loss = name.startswith("torch.nn.") and name.endswith("Loss")
    return is_loss and isinstance(made, ast.Call) and _reduces_to_mean(made)


def _reduces_to_mean(call: ast.Call) -> bool:
    how = keyword(call, "reduction")
    given = any(each.arg in (None, "reduce", "size_average") for each in call.keywords)
    return not given and (how is None or (isinstance(how, ast.Constant) and how.value == "mean"))
