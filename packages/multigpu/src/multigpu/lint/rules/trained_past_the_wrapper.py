"""FL038: a model in DDP that is trained by way of `.module`, so that DDP never sees a forward."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import method_of
from ..over_ranks import trains_over_ranks
from ..readings import Reading
from ..scopes import Program, Scope
from ..wrappers import is_distributed, is_wrapper

RULE = Rule(
    "FL038",
    "trained-past-the-wrapper",
    "DDP brings gradients together for a forward of its own, and this one goes past it: each rank trains alone",
    "model(x), without .module, wherever a backward follows",
)
QUIET = re.compile(r"no_grad|inference_mode")
JUDGES = re.compile(r"eval|valid|test|sample|infer|generate|predict|export", re.IGNORECASE)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not trains_over_ranks(program):
        return
    for scope in program.scopes:
        calls = [node for node in scope.nodes if isinstance(node, ast.Call)]
        if not any(method_of(node) == "backward" for node in calls):
            continue
        for model in _in_ddp(scope, program):
            past = [node for node in calls if ast.unparse(node.func) == f"{model}.module"]
            trained = [node for node in past if not _is_quiet(node, program)]
            if trained and not _is_used_whole(model, program):
                yield trained[0], f"{model}.module() where {model}() is never called"


def _in_ddp(scope: Scope, program: Program) -> Iterator[str]:
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = node.value
            if is_wrapper(program.names.called(made)) and is_distributed(made, program.names):
                yield ast.unparse(node.targets[0])


def _is_quiet(node: ast.Call, program: Program) -> bool:
    """Whether no gradient comes of a call: it is in `no_grad`, or in a function that judges or makes samples."""
    for above in program.around(node):
        if isinstance(above, ast.With) and any(QUIET.search(ast.unparse(item)) for item in above.items):
            return True
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return bool(JUDGES.search(above.name)) or any(QUIET.search(ast.unparse(d)) for d in above.decorator_list)
        if isinstance(above, ast.Attribute) and above.attr == "detach":
            return True
    return False


def _is_used_whole(model: str, program: Program) -> bool:
    """Whether the file calls the wrapped model itself, or hands it to something that may."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *(each.value for each in node.keywords)]
            if model in (ast.unparse(node.func), *(ast.unparse(each) for each in given)):
                return True
    return False
