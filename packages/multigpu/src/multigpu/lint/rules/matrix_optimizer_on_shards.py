"""FL027: an optimizer that computes with a gradient as a matrix, and gets the rows of it that one rank has."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import FUNCTIONS, last_name, method_of
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL027",
    "matrix-optimizer-on-shards",
    "its products, norms and factors mix all rows, and a shard has some of them: the step is a different one",
    "grad.full_tensor() on every rank, the step of the whole matrix, and this rank's rows of it; or torch.optim.Muon",
    "shard-norm",
)
MIX = ("matmul", "mm", "bmm", "addmm", "baddbmm", "norm", "svd", "qr", "eigh", "inverse", "matrix_power", "vector_norm")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not program.any_call("to_local"):
        return
    mixing = {scope.name for scope in program.scopes if any(map(_mixes, scope.nodes)) and not _gathers(scope.node)}
    for cls in (node for node in ast.walk(program.tree) if isinstance(node, ast.ClassDef)):
        if any(last_name(base) == "Optimizer" for base in cls.bases):
            for method in (item for item in cls.body if isinstance(item, FUNCTIONS)):
                if not _gathers(cls):
                    yield from _local_matrices(method, mixing, program)


def _mixes(node: ast.AST) -> bool:
    """Whether an operation mixes the rows of a matrix."""
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)) or last_name(node) in MIX


def _gathers(tree: ast.AST) -> bool:
    """Whether a function or a class brings rows of several ranks together."""
    names = {last_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any("gather" in name or "all_to_all" in name or "reduce" in name for name in names) or "full_tensor" in names


def _local_matrices(method: ast.AST, mixing: set[str], program: Program) -> Iterator[Found]:
    """Local parts of gradients that are given to what mixes rows."""
    local: set[str] = set()
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and _is_local_gradient(node.value):
            local |= {ast.unparse(target) for target in node.targets}
    for node in ast.walk(method):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and (last_name(node) in mixing or _mixes(node)):
            given = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else [*node.args]
        elif isinstance(node, ast.BinOp) and _mixes(node):
            given = [node.left, node.right]
        if any(ast.unparse(each) in local or _is_local_gradient(each) for each in given):
            yield node, f"{last_name(node) or 'a product'} of the rows that this rank has of a gradient"


def _is_local_gradient(node: ast.AST) -> bool:
    """Whether it is `p.grad.to_local()`."""
    if method_of(node) != "to_local" or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return "grad" in ast.unparse(node.func.value).rsplit(".", 1)[-1]
