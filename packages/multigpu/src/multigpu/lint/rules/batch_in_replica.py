"""FL026: the size of the whole batch in a module that DataParallel copies, where each copy gets a part of it."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import matches
from ..names import FUNCTIONS, last_name, self_attribute
from ..readings import Reading
from ..replicas import copied_classes
from ..scopes import STEP, Program
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
    kept = {cls: _of_init(cls) for cls in copied_classes(program)}
    for scope in program.scopes:
        names = kept.get(scope.cls, set()) if scope.cls is not None and scope.kind == STEP else set()
        for node in scope.nodes if names else ():
            is_read = self_attribute(node) in names and isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
            if is_read and _counts_rows(node, program):
                yield node, f"{ast.unparse(node)} in {scope.name}()"


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
