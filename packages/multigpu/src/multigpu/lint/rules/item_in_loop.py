"""FL009: `.item()` in a loop, so that every pass waits for the GPU."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from ..finding import Found, Rule
from ..habits import EVALUATING_FUNCTION, SELDOM, matches
from ..names import Names, keyword, last_name, method_of, owner_of
from ..readings import Reading
from ..scopes import DATA, STEP, Scope
from ..values import FACTORIES

RULE = Rule(
    "FL009",
    "item-in-loop",
    "waits for the GPU in every pass",
    "sum up .detach() tensors, and read .item() once, after the loop or every so many steps",
    "no-faster",
)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
ARRAY = r"\bnp\.|numpy\(|\[::-1\]"  # an array, since a tensor has no negative step
TAKE_NUMBERS = ("env", "game", "tokenizer", "cv2", "draw")  # these need a number, so the wait cannot be avoided


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for scope in reading.program.scopes:
        if scope.kind != DATA:
            yield from _in_scope(scope, reading.program.names)


def _in_scope(scope: Scope, names: Names) -> Iterator[Found]:
    parents = {child: node for node in (scope.node, *scope.nodes) for child in ast.iter_child_nodes(node)}
    losses = {_root(node) for node in scope.nodes if method_of(node) == "backward"} - {""}
    on_cpu = _names_on_cpu(scope, names, parents)
    loops = (*LOOPS, *COMPREHENSIONS) if scope.kind == STEP else LOOPS
    for node in scope.nodes:
        if not isinstance(node, ast.Call) or not _waits(node, losses) or _is_on_cpu(node, names, on_cpu):
            continue
        around = list(_around(node, parents))
        loop = next((part for part in around if isinstance(part, loops)), None)
        if loop is None or (isinstance(loop, ast.For) and _holds(loop.iter, node)):
            continue  # `for i in range(n.item())` reads it once
        inside = around[: around.index(loop)]
        if not (
            _of_epochs(loop, node) or _seldom([node, *inside]) or _evaluates(scope, around, loop) or _wanted(inside)
        ):
            what = f"{_root(node) or 'this'}.item()" if method_of(node) else "float() of a loss"
            yield node, f"{what} in a loop"


def _waits(node: ast.Call, losses: set[str]) -> bool:
    if method_of(node) == "item" and not node.args:
        return not matches(r"\bnp\.|numpy", ast.unparse(node))
    given = node.args[0] if node.args else None
    return last_name(node) == "float" and isinstance(given, ast.Name) and given.id in losses


def _names_on_cpu(scope: Scope, names: Names, parents: dict[ast.AST, ast.AST]) -> set[str]:
    """Names that hold arrays or tensors of the CPU, or that run over one in a loop: reading them waits for nothing."""
    found: set[str] = set()
    for _ in range(2):
        for node in scope.nodes:
            if not isinstance(node, ast.Assign | ast.For):
                continue
            source, targets = (node.value, node.targets) if isinstance(node, ast.Assign) else (node.iter, [node.target])
            fetched = method_of(source) == "cpu" and not any(isinstance(part, LOOPS) for part in _around(node, parents))
            if fetched or matches(ARRAY, ast.unparse(source)) or _is_on_cpu(source, names, found):
                found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def _is_on_cpu(node: ast.AST, names: Names, known: set[str]) -> bool:
    """Whether a value comes from a name of the CPU, or from a factory without a device."""
    match node:
        case ast.Name():
            return node.id in known
        case ast.Subscript() | ast.Attribute():
            return _is_on_cpu(node.value, names, known)
        case ast.BinOp():
            return _is_on_cpu(node.left, names, known) or _is_on_cpu(node.right, names, known)
        case ast.Call() if names.called(node).startswith("torch."):
            if last_name(node) in FACTORIES:
                return keyword(node, "device") is None and not matches("tensor|array", last_name(node))
            return any(_is_on_cpu(given, names, known) for given in node.args)
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            return method not in ("to", "cuda") and _is_on_cpu(owner, names, known)
    return False


def _root(node: ast.AST) -> str:
    """`a` of `a.b().c.item()`."""
    while not isinstance(node, ast.Name):
        inner = node.func if isinstance(node, ast.Call) else getattr(node, "value", None)
        if not isinstance(inner, ast.AST):
            return ""
        node = inner
    return node.id


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _holds(tree: ast.AST, node: ast.AST) -> bool:
    return any(part is node for part in ast.walk(tree))


def _of_epochs(loop: ast.AST, node: ast.AST) -> bool:
    """Whether the loop is over epochs: the loop over batches is inside it, and the call outside of that."""
    inner = [part for part in ast.walk(loop) if isinstance(part, LOOPS) and part is not loop]
    if not isinstance(loop, LOOPS) or any(_holds(each, node) for each in inner):
        return False
    within = {part for each in inner for part in ast.walk(each)}
    trains = any(_trains(part) for part in ast.walk(loop) if part not in within)
    trains_inside = any(method_of(part) == "backward" for part in within)
    named = isinstance(loop, ast.For) and matches("epoch", ast.unparse(loop.target))
    return trains_inside or (not trains and (named or bool(inner)))


def _trains(node: ast.AST) -> bool:
    """Whether a call goes backward or steps an optimizer; a schedule steps once an epoch, too."""
    return method_of(node) == "backward" or (method_of(node) == "step" and "sched" not in owner_of(node).lower())


def _seldom(path: list[ast.AST]) -> bool:
    """Whether an `if` on the way from the call to the loop lets it run every so many steps only, or once."""
    for below, part in pairwise(path):
        if isinstance(part, ast.If | ast.IfExp) and below in (part.body if isinstance(part, ast.If) else [part.body]):
            once = isinstance(part.test, ast.Compare) and isinstance(part.test.ops[0], ast.Eq)
            if once or matches(SELDOM, ast.unparse(part.test)):
                return True
    return False


def _evaluates(scope: Scope, around: list[ast.AST], loop: ast.AST) -> bool:
    """Whether the code evaluates: it does not train, and the numbers are its purpose."""
    if any(method_of(part) in ("backward", "zero_grad") for part in ast.walk(loop)):
        return False
    entered = [
        item.context_expr for part in (*around, *ast.walk(loop)) if isinstance(part, ast.With) for item in part.items
    ]
    without_grad = [*entered, *getattr(scope.node, "decorator_list", [])]
    in_evaluation = any(last_name(part) in ("no_grad", "inference_mode") for part in without_grad)
    asks_for_it = any(method_of(part) == "eval" for part in scope.nodes)
    return in_evaluation or asks_for_it or matches(EVALUATING_FUNCTION, scope.name)


def _wanted(inside: list[ast.AST]) -> bool:
    return any(isinstance(part, ast.Call) and _root(part) in TAKE_NUMBERS for part in inside)
