"""Which arguments of a function are tensors, as far as their names, defaults, annotations and use show."""

import ast

from .flow import Environment
from .habits import NUMBER, TENSOR, matches
from .scopes import DATA, DRIVER, STEP, Program, Scope
from .values import ARRAY_ONLY, GUESSED, ON_DEVICE, PLAIN, TENSOR_ONLY, UNKNOWN

PLAIN_TYPES = ("int", "float", "str", "bool", "int | None", "float | None", "str | None", "bool | None")


def parameters(scope: Scope, program: Program) -> Environment:
    """The values of a function's arguments. Those of a step are tensors of its device unless a sign shows otherwise."""
    if isinstance(scope.node, ast.Module):
        return {}
    defaults = _defaults(scope.node.args)
    shown, others = _used_as(scope, program)
    known: Environment = {}
    for given in scope.parameters:
        default = defaults.get(given.arg)
        typed = ast.unparse(given.annotation) if given.annotation else ""
        is_number = isinstance(default, ast.Constant) and default.value is not None
        if is_number or typed in PLAIN_TYPES or matches(NUMBER, given.arg):
            known[given.arg] = PLAIN
        elif scope.kind in (DRIVER, DATA):
            known[given.arg] = UNKNOWN
        else:
            untyped = typed in ("", "Any")
            tensor_by_type = "Tensor" in typed and not matches("ndarray|PIL", typed)
            sure = tensor_by_type or (untyped and (scope.kind == STEP or given.arg in shown))
            guess = GUESSED if untyped and matches(TENSOR, given.arg) and given.arg not in others else UNKNOWN
            known[given.arg] = ON_DEVICE if sure else guess
    for rest in filter(None, (scope.node.args.vararg, scope.node.args.kwarg)):
        known[rest.arg] = ON_DEVICE if scope.kind == STEP else UNKNOWN
    return known


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = [given.arg for given in (*arguments.posonlyargs, *arguments.args)]
    found = dict(zip(positional[::-1], arguments.defaults[::-1], strict=False))
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return found | {given.arg: default for given, default in by_name if default is not None}


def _used_as(scope: Scope, program: Program) -> tuple[set[str], set[str]]:
    """Names on which something is called that only a tensor has, and those that are arrays or pictures."""
    tensors, others = set(), set()
    for node in scope.nodes:
        if isinstance(node, ast.Attribute) and (owner := _indexed(node.value)):
            tensors |= {owner} if node.attr in TENSOR_ONLY else set()
            others |= {owner} if node.attr in ARRAY_ONLY else set()
        elif isinstance(node, ast.Call) and program.names.called(node).startswith("torch.nn.functional."):
            tensors |= {given.id for given in node.args if isinstance(given, ast.Name)}
    return tensors - others, others


def _indexed(node: ast.AST) -> str:
    """`x` of `x` and of `x[:, None]`, but not of `x["boxes"]`."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
