"""Which lines run on one rank only, or on every rank, as far as a file's tests and calls show."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .names import FUNCTIONS, last_name, method_of
from .scopes import Program, Scope
from .values import words

# Functions of torch.distributed that wait until every rank of the group has called them.
COLLECTIVES = words("""
    all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced all_to_all
    all_to_all_single barrier broadcast broadcast_object_list gather gather_object monitored_barrier new_group reduce
    reduce_scatter reduce_scatter_tensor scatter scatter_object_list
""")
CHECKPOINTS = {f"torch.distributed.checkpoint.{name}" for name in ("save", "async_save", "load")}
RANK = re.compile(r"(get_)?(global_|local_|world_|my_)?rank", re.IGNORECASE)
FIRST = re.compile(
    r"(is_)?(main|master|primary|chief)(_(process|proc|rank|worker))?|is_(local|world|global)_(main_process|process_zero)"
    r"|(is_)?rank_?(zero|0)",
    re.IGNORECASE,
)
# A test with one of these words may leave ranks out. The list is long, since every project has its own words for this.
MAYBE = re.compile(
    r"rank|main|master|primary|chief|zero|root|leader|process|proc\b|proc_|gpu|device|distribut|ddp|parallel|dist\b"
    r"|world_size|node|host|worker|writer|replica|launcher",
    re.IGNORECASE,
)
STARTERS = ("spawn", "start_processes", "Process", "launch", "elastic_launch")


def collective(node: ast.AST, program: Program) -> str:
    """The function of torch.distributed that a call calls, if it waits for every rank of the default group, else "".

    All ranks also put together a sharded checkpoint, and the whole of a DTensor.
    """
    if method_of(node) == "full_tensor":
        return "full_tensor"
    name = program.names.called(node)
    if name in CHECKPOINTS:
        assert isinstance(node, ast.Call)
        alone = any(keyword.arg in (None, "no_dist", "process_group") for keyword in node.keywords)
        return "" if alone else ".".join(name.split(".")[-2:])
    if not name.startswith("torch.distributed.") or last_name(node) not in COLLECTIVES:
        return ""
    assert isinstance(node, ast.Call)
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    in_group = any(keyword.arg in (None, "group") for keyword in node.keywords)
    return "" if in_group or any("group" in last_name(each) for each in given) else last_name(node)


def first_only(test: str, held: bool) -> bool:
    """Whether only the first rank passes a test such as `rank == 0`, if the test is true (`held`) or false."""
    return _first_only(ast.parse(test, mode="eval").body, held)


def _first_only(test: ast.expr, held: bool) -> bool:
    match test:
        case ast.BoolOp(op=ast.And(), values=values) if held:
            return any(_first_only(value, True) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _first_only(operand, not held)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            zero = any(isinstance(side, ast.Constant) and side.value == 0 for side in (left, right))
            return zero and (_is_rank(left) or _is_rank(right)) and held == isinstance(op, ast.Eq)
        case ast.Name() | ast.Attribute() | ast.Call():
            return (held and bool(FIRST.fullmatch(last_name(test)))) or (not held and _is_rank(test))
    return False


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement is a test, and the ranks that pass it leave the block."""
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Continue | ast.Break)


def _failed(leaving: ast.If) -> set[tuple[str, bool]]:
    """The outcome of a test for the ranks that did not leave by it."""
    if isinstance(leaving.test, ast.UnaryOp) and isinstance(leaving.test.op, ast.Not):
        return {(ast.unparse(leaving.test.operand), True)}
    return {(ast.unparse(leaving.test), False)}


def _in_words(test: str, held: bool) -> str:
    """A test that held, as it is written; the opposite of one that did not: `rank == 0` for `rank != 0`."""
    if held:
        return test
    read = ast.parse(test, mode="eval").body
    if isinstance(read, ast.Compare) and isinstance(read.ops[0], ast.NotEq):
        read.ops = [ast.Eq()]
        return ast.unparse(read)
    return f"not {test}"


def _is_rank(node: ast.expr) -> bool:
    return RANK.fullmatch(last_name(node)) is not None


@dataclass
class Ranks:
    """Which ranks run which lines of a file, as far as the file shows."""

    program: Program

    def on_first(self, node: ast.AST) -> set[str]:
        """The tests that let only the first rank reach a node, each in words that hold there."""
        return {_in_words(test, held) for test, held in self.led_to(node) if first_only(test, held)}

    def led_to(self, node: ast.AST) -> set[tuple[str, bool]]:
        """The tests that led to a node, and whether each held: those around it, and those before it that leave."""
        return self.program.conditions(node) | {test for leaving in self.left_before(node) for test in _failed(leaving)}

    def left_before(self, node: ast.AST) -> Iterator[ast.If]:
        """The tests above a line of its own function that end with `return`, `continue` or `break`."""
        below = node
        for above in self.program.around(node):
            yield from self._left.get(below, ())
            if isinstance(above, FUNCTIONS):
                return
            below = above

    @cached_property
    def _left(self) -> dict[ast.AST, tuple[ast.If, ...]]:
        """The tests that leave above a statement, in its own block."""
        found: dict[ast.AST, tuple[ast.If, ...]] = {}
        for node in ast.walk(self.program.tree):
            for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
                leaving: tuple[ast.If, ...] = ()
                for statement in block if isinstance(block, list) else ():
                    found[statement] = leaving
                    leaving += (statement,) if _leaves(statement) else ()
        return found

    def may_ask(self, test: str) -> bool:
        """Whether a test may differ between ranks: by its words, or by a name that got its value from such a test."""
        if "__name__" in test:
            return False
        return bool(MAYBE.search(test)) or not self._told.isdisjoint(re.findall(r"\w+", test))

    @cached_property
    def _told(self) -> set[str]:
        """The names that the file assigns under a test of the rank, or from one."""
        found = set()
        for node in ast.walk(self.program.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                tests = [test for test, _ in self.program.conditions(node) if "__name__" not in test]
                if any(MAYBE.search(test) for test in tests) or _compares(node.value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found |= {last_name(target) for target in targets} - {""}
        return found

    def may_leave_out(self, node: ast.AST, scope: Scope) -> bool:
        """Whether a test around a node, or one before it that ends the function, may keep ranks from it."""
        if any(self.may_ask(test) for test, _ in self.program.conditions(node)):
            return True
        return any(
            isinstance(other, ast.If)
            and other.lineno < node.lineno  # type: ignore[attr-defined]
            and isinstance(other.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            and self.may_ask(ast.unparse(other.test))
            for other in scope.nodes
        )

    @cached_property
    def started(self) -> set[str]:
        """The functions that the file starts processes with."""
        calls = [node for node in ast.walk(self.program.tree) if isinstance(node, ast.Call)]
        given = [[*call.args, *(each.value for each in call.keywords)] for call in calls if last_name(call) in STARTERS]
        return {last_name(each) for arguments in given for each in arguments} - {""}

    def calls_of(self, scope: Scope) -> list[tuple[ast.Call, Scope]]:
        """The calls of a function in its own file, each with the function that makes it."""
        name = scope.cls.name if scope.cls is not None and scope.name == "__init__" else scope.name
        return [
            (node, other)
            for other in self.program.scopes
            for node in other.nodes
            if isinstance(node, ast.Call) and last_name(node) == name and not self._of_import(node)
        ]

    def _of_import(self, call: ast.Call) -> bool:
        """Whether a call is of an imported module: `np.save`, `torch.save`."""
        root = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id in self.program.names.imported

    def reaches_all(self, node: ast.AST, scope: Scope, seen: frozenset[str] = frozenset()) -> bool:
        """Whether every rank reaches a line; False if the file does not show it."""
        if self.may_leave_out(node, scope):
            return False
        if isinstance(scope.node, ast.Module):
            return not self.started
        if scope.name in self.started:
            return True
        joins = any(last_name(each) == "init_process_group" for each in scope.nodes if isinstance(each, ast.Call))
        if joins and not self.started:
            return True
        key = f"{scope.cls.name if scope.cls else ''}.{scope.name}:{scope.node.lineno}"
        if key in seen or scope.node.decorator_list:
            return False
        return any(self.reaches_all(call, other, seen | {key}) for call, other in self.calls_of(scope))


def _compares(value: ast.expr) -> bool:
    """Whether a value comes from a test of the rank."""
    return any(
        (isinstance(part, ast.Compare) and MAYBE.search(ast.unparse(part))) or FIRST.fullmatch(last_name(part))
        for part in ast.walk(value)
    )
