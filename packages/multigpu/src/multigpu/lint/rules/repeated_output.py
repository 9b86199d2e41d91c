"""FL028: a list for the tensors of all ranks that holds one tensor several times."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword, last_name
from ..readings import Reading
from ..scopes import Scope

RULE = Rule(
    "FL028",
    "repeated-output",
    "the list holds one tensor several times, so every rank's rows are written over those of the one before",
    "[torch.empty_like(x) for _ in range(world_size)]",
)
LISTS = {"all_gather": "tensor_list", "gather": "gather_list", "all_to_all": "output_tensor_list"}
POSITIONS = {"all_gather": 0, "gather": 1, "all_to_all": 0}
MAKERS = ("empty", "zeros", "ones", "full", "rand", "randn", "tensor", "clone")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    for scope in program.scopes:
        for node in scope.nodes:
            name = last_name(node)
            if isinstance(node, ast.Call) and name in LISTS and "distributed" in program.names.called(node):
                given = keyword(node, LISTS[name])
                if given is None and len(node.args) > POSITIONS[name]:
                    given = node.args[POSITIONS[name]]
                made = _made(given, scope, node.lineno)
                if made is not None:
                    yield made, f"{ast.unparse(made)} as the output of {name}()"


def _made(given: ast.expr | None, scope: Scope, line: int) -> ast.expr | None:
    """The expression that repeats one new tensor, in the call itself or as the last value of its name."""
    if isinstance(given, ast.Name):
        values = [
            node.value
            for node in scope.nodes
            if isinstance(node, ast.Assign) and node.lineno < line and given.id in map(ast.unparse, node.targets)
        ]
        given = values[-1] if values else None
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult):
        lists = [side for side in (given.left, given.right) if isinstance(side, ast.List)]
        if lists and len(lists[0].elts) == 1 and _is_new(lists[0].elts[0]):
            return given
    return None


def _is_new(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value).removeprefix("new_").removesuffix("_like") in MAKERS
