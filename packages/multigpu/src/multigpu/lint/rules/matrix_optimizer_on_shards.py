"""FL027: an optimizer that computes with a gradient as a matrix, and gets the rows of it that one rank has."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import FUNCTIONS, last_name, plain_names
from ..over_ranks import names_in
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
    program, flat = reading.program, _of_flat_shards(reading.program)
    if not flat and names_in(program).isdisjoint(("to_local", "_local_tensor")):
        return
    mixing = {scope.name for scope in program.scopes if any(map(_mixes, scope.nodes)) and not _gathers(scope.node)}
    for cls in (node for node in ast.walk(program.tree) if isinstance(node, ast.ClassDef)):
        if any(last_name(base) == "Optimizer" for base in cls.bases) and not _gathers(cls):
            for method in (item for item in cls.body if isinstance(item, FUNCTIONS)):
                yield from _local_matrices(method, mixing)
                if cls.name in flat:
                    yield from _norms_of_parameters(method)


def _of_flat_shards(program: Program) -> set[str]:
    """What the file makes of the parameters of a model in FullyShardedDataParallel, which are plain tensors there."""
    if "NO_SHARD" in names_in(program):
        return set()
    assigned = [node for node in ast.walk(program.tree) if isinstance(node, ast.Assign)]
    sharded = {
        ast.unparse(target)
        for node in assigned
        if program.names.called(node.value).endswith(".FullyShardedDataParallel")
        for target in node.targets
    }
    calls = [node for node in ast.walk(program.tree) if isinstance(node, ast.Call)]
    given = {last_name(call) for call in calls for each in call.args if _owner(each, "parameters") in sharded}
    return given - {""}


def _owner(node: ast.AST, method: str) -> str:
    """`a` of `a.method()`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    return ast.unparse(node.func.value) if is_call else ""  # type: ignore[attr-defined]


def _norms_of_parameters(method: ast.AST) -> Iterator[Found]:
    """Norms and products of a parameter, its gradient, and what is made of them."""
    loops = (node for node in ast.walk(method) if isinstance(node, ast.For) and "params" in ast.unparse(node.iter))
    made = set().union(*(plain_names(loop.target) for loop in loops))
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and plain_names(node.value) & made:
            made |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(method):
        if _mixes(node) and isinstance(node, ast.Call | ast.BinOp) and plain_names(node) & made:
            yield node, f"{last_name(node) or 'a product'} of the part that this rank has of a parameter"


def _mixes(node: ast.AST) -> bool:
    """Whether an operation mixes the rows of a matrix."""
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)) or last_name(node) in MIX


def _gathers(tree: ast.AST) -> bool:
    """Whether a function or a class brings rows of several ranks together."""
    names = {last_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any("gather" in name or "all_to_all" in name or "reduce" in name for name in names) or "full_tensor" in names


def _local_matrices(method: ast.AST, mixing: set[str]) -> Iterator[Found]:
    """Local parts of gradients that are given to what mixes rows."""
    local: set[str] = set()
    of_gradients: set[str] = set()  # as a buffer of momentum is
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            names = {ast.unparse(target) for target in node.targets}
            if _is_local_gradient(node.value, of_gradients):
                local |= names
            elif _has_a_gradient(node.value, of_gradients):
                of_gradients |= names
    for node in ast.walk(method):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and (last_name(node) in mixing or _mixes(node)):
            given = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else [*node.args]
        elif isinstance(node, ast.BinOp) and _mixes(node):
            given = [node.left, node.right]
        if any(ast.unparse(each) in local or _is_local_gradient(each, of_gradients) for each in given):
            yield node, f"{last_name(node) or 'a product'} of the rows that this rank has of a gradient"


def _is_local_gradient(node: ast.AST, of_gradients: set[str]) -> bool:
    """Whether it is `p.grad.to_local()`, or the same of what was made of a gradient."""
    part = node.func if isinstance(node, ast.Call) else node
    is_local = isinstance(part, ast.Attribute) and part.attr in ("to_local", "_local_tensor")
    return is_local and _has_a_gradient(part.value, of_gradients)  # type: ignore[attr-defined]


def _has_a_gradient(node: ast.AST, of_gradients: set[str]) -> bool:
    """Whether a gradient is in an expression, or a name that was made of one."""
    return any(
        "grad" in last_name(part) or ast.unparse(part) in of_gradients
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    )
