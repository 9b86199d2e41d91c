"""FL026: what is meant for the whole batch, in a module that DataParallel copies: each copy gets a part of it."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import FUNCTIONS, last_name, method_of, self_attribute
from ..readings import Reading
from ..replicas import copied_classes, given_values
from ..scopes import STEP, Program, Scope
from ..values import FACTORIES

RULE = Rule(
    "FL026",
    "batch-in-replica",
    "DataParallel cuts the batch into one part for each GPU, so a replica never sees that many rows",
    "x.size(0), the rows that this replica got",
    "shapes-in-replica",
)
BATCH = r"^_?(batch_?size|bs|bsz|batch_?sz|n_?batch)$"
SHAPES = ("view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_full", "new_empty", "unflatten")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    copied = copied_classes(program)
    kept = {cls: _of_init(cls) for cls in copied}
    for scope in program.scopes:
        if scope.cls in copied and scope.kind == STEP:
            yield from _of_all_rows(scope, program)
        names = kept.get(scope.cls, set()) if scope.cls is not None and scope.kind == STEP else set()
        for node in scope.nodes if names else ():
            is_read = self_attribute(node) in names and isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
            if is_read and _counts_rows(node, program):
                yield node, f"{ast.unparse(node)} in {scope.name}()"


def _of_all_rows(scope: Scope, program: Program) -> Iterator[Found]:
    """Losses over all rows of a batch: each row among the others, and a mean over what a mask leaves."""
    counted = {
        ast.unparse(target)
        for node in scope.nodes
        if isinstance(node, ast.Assign) and _numbers_rows(node.value, program)
        for target in node.targets
    }
    made = (name for name, values in given_values(program).items() for each in values if _crosses(each))
    crossing = {"cross_entropy", *made}
    for node in scope.nodes:
        match node:
            case ast.Call(args=[_, target, *_]) if last_name(node) in crossing:
                if _numbers_rows(target, program) or ast.unparse(target) in counted:
                    yield node, f"cross entropy of each row among the others of its replica in {scope.name}()"
            case ast.BinOp(op=ast.Div(), left=left, right=right) if _sums_all(left) and _sums_all(right):
                yield node, f"{ast.unparse(node)}, the mean over what a replica's own rows leave, in {scope.name}()"


def _crosses(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value) == "CrossEntropyLoss"


def _numbers_rows(node: ast.expr, program: Program) -> bool:
    """Whether it is `torch.arange(x.size(0))`, the number of each row."""
    while method_of(node) in ("to", "cuda", "long"):
        node = node.func.value  # type: ignore[attr-defined]
    if not isinstance(node, ast.Call) or program.names.called(node) != "torch.arange" or len(node.args) != 1:
        return False
    return re.search(r"\.size\(0\)|\.shape\[0\]|^len\(", ast.unparse(node.args[0])) is not None


def _sums_all(node: ast.expr) -> bool:
    """Whether it is `x.sum()`, also if it is kept from being 0."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="clamp" | "clamp_min" | "float")):
            return _sums_all(owner)
        case ast.BinOp(op=ast.Add(), left=left, right=ast.Constant()):
            return _sums_all(left)
        case ast.Call(func=ast.Attribute(attr="sum"), args=[], keywords=[]):
            return True
    return False


def _of_init(cls: ast.ClassDef) -> set[str]:
    """The attributes for the size of a batch that `__init__` alone sets."""
    setters: dict[str, set[str]] = {}
    for method in cls.body:
        for node in ast.walk(method) if isinstance(method, FUNCTIONS) else ():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and matches(BATCH, node.attr):
                setters.setdefault(self_attribute(node), set()).add(method.name)  # type: ignore[attr-defined]
    return {name for name, methods in setters.items() if name and methods == {"__init__"}}


def _counts_rows(node: ast.AST, program: Program) -> bool:
    """Whether a size is a shape, or compared with one, as it is: divided, it may be that of a replica."""
    for above in program.around(node):
        match above:
            case ast.Tuple() | ast.List() | ast.UnaryOp():
                continue
            case ast.BinOp(op=ast.Mult()):
                continue
            case ast.Compare():
                return any("size(" in ast.unparse(part) or ".shape" in ast.unparse(part) for part in ast.walk(above))
            case ast.Call():
                name = program.names.called(above)
                makes = name.startswith("torch.") and name.count(".") == 1 and last_name(above) in FACTORIES
                return makes or (isinstance(above.func, ast.Attribute) and above.func.attr in SHAPES)
            case _:
                return False
    return False
