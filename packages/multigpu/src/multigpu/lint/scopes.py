"""Which part of a program a function is: a step of a model, a driver that trains it, data loading, or a helper.

A line that is a fault in one part is right in another. Code that a replica runs must work on any device, and so must a
helper that it calls. A script, or the function that runs the training loop, has one device of its own.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from .habits import (
    CPU_PLACES,
    DATA_CLASS,
    DATA_FUNCTION,
    DRIVER_CLASS,
    DRIVER_FUNCTION,
    NOT_A_MODULE,
    STEP_METHOD,
    matches,
)
from .names import FUNCTIONS, AnyFunction, Names, keyword, last_name, method_of, own_nodes, self_attribute

STEP, BUILD, HELPER, DRIVER, DATA = "step", "build", "helper", "driver", "data"
HANDED = ("submit", "map", "imap", "imap_unordered", "apply_async")  # methods of a pool that take a function


@dataclass
class Scope:
    """A function and its part in the program, or the statements of a file."""

    node: AnyFunction | ast.Module
    kind: str
    cls: ast.ClassDef | None = None
    is_module: bool = False  # a method of an nn.Module or of an autograd Function
    reached: bool = False  # by forward: what it keeps on self is kept by a replica
    parameters: list[ast.arg] = field(default_factory=list)

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "")

    @property
    def returns_no_tensor(self) -> bool:
        """Whether its annotation excludes a tensor."""
        said = getattr(self.node, "returns", None)
        return said is not None and not matches("Tensor|Any|dict$|list$|tuple$", ast.unparse(said))

    @property
    def in_loader(self) -> bool:
        """Whether a DataLoader calls it, in a process of its own."""
        return self.kind == DATA and (self.name == "__getitem__" or matches("collate", self.name))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Everything in it but the functions and classes defined in it."""
        return list(own_nodes(self.node))


class Program:
    """The scopes of a file, and facts about the whole file."""

    def __init__(self, tree: ast.Module, path: str = "") -> None:
        self.tree, self.names = tree, Names(tree)
        self.of_tests = Path(path).name.startswith(("test_", "conftest"))
        self.of_data = not CPU_PLACES.isdisjoint((Path(path).parent.name, Path(path).stem))
        self.scopes = list(self._scopes())

    @cached_property
    def _by_name(self) -> dict[str, list[Scope]]:
        found: dict[str, list[Scope]] = {}
        for scope in self.scopes:
            found.setdefault(scope.name, []).append(scope)
        return found

    def named(self, name: str) -> list[Scope]:
        """The scopes of that name."""
        return self._by_name.get(name, [])

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the innermost to the file."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def conditions(self, node: ast.AST) -> set[tuple[str, bool]]:
        """The tests that led to a node, and whether each held."""
        found = set()
        for around in self.around(node):
            if isinstance(around, ast.If | ast.IfExp) and node is not around.test:
                holds = node in around.body if isinstance(around, ast.If) else node is around.body
                test = around.test
                if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                    test, holds = test.operand, not holds
                found.add((ast.unparse(test), holds))
            node = around
        return found

    def exclude_each_other(self, node: ast.AST, other: ast.AST) -> bool:
        """Whether two nodes are in different branches of the same test, also if it is written twice."""
        conditions = self.conditions(other)
        return any((test, not held) in conditions for test, held in self.conditions(node))

    @cached_property
    def is_script(self) -> bool:
        """Whether the file does something when it is run, beyond defining names."""
        return any(
            isinstance(node, ast.For | ast.While | ast.With | ast.If | ast.AugAssign)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
            for node in self.tree.body
        )

    @cached_property
    def functions_called(self) -> set[str]:
        """Last names of everything called, methods among them."""
        return {last_name(node) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}

    def any_call(self, *endings: str) -> bool:
        """Whether a function with one of these last names is called anywhere."""
        return not self.functions_called.isdisjoint(endings)

    @cached_property
    def started_in_threads(self) -> set[str]:
        """Names of functions that are handed to threads: `Thread(target=f)`, `pool.submit(f)`, `pool.map(f)`."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        pools = self._thread_pools()
        found = {last_name(target) for call in calls if last_name(call) == "Thread" and (target := _target(call))}
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in HANDED and call.args:
                owner = call.func.value
                if last_name(owner) in pools or self._is_thread_pool(owner):
                    found.add(last_name(call.args[0]))
        return found - {""}

    def _thread_pools(self) -> set[str]:
        """Names that hold a pool of threads, by an assignment or by `with ... as`."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and self._is_thread_pool(node.value):
                found |= {last_name(target) for target in node.targets}
            elif isinstance(node, ast.withitem) and node.optional_vars and self._is_thread_pool(node.context_expr):
                found.add(last_name(node.optional_vars))
        return found

    def _is_thread_pool(self, node: ast.AST) -> bool:
        made = self.names.called(node)
        return made.endswith(("ThreadPoolExecutor", "ThreadPool")) or made == "multiprocessing.dummy.Pool"

    def module_classes(self) -> Iterator[ast.ClassDef]:
        """Every class that derives from nn.Module, as far as this file shows."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and self._is_module(node):
                yield node

    def _is_module(self, cls: ast.ClassDef) -> bool:
        bases = [self.names.full(base) for base in cls.bases]
        if any(matches(NOT_A_MODULE, base.rsplit(".", 1)[-1]) for base in (cls.name, *bases)):
            return any(base.startswith("torch.nn.") for base in bases)
        known = any(base.startswith("torch.nn.") or base.endswith(("Module", "Function")) for base in bases)
        return known or any(isinstance(item, FUNCTIONS) and item.name == "forward" for item in cls.body)

    def _scopes(self) -> Iterator[Scope]:
        yield Scope(self.tree, DRIVER)
        yield from self._inside(self.tree, None, False)

    def _inside(self, parent: ast.AST, cls: ast.ClassDef | None, nested: bool) -> Iterator[Scope]:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef):
                yield from self._inside(node, node, False)
            elif isinstance(node, FUNCTIONS):
                yield self._scope(node, cls)
                yield from self._inside(node, cls, True)
            else:
                yield from self._inside(node, cls, nested)

    def _scope(self, function: AnyFunction, cls: ast.ClassDef | None) -> Scope:
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        parameters = [given for given in parameters if given.arg not in ("self", "cls", "ctx")]
        if cls is not None and self._is_module(cls):
            reached = function.name in reached_from_forward(cls)
            step = reached or matches(STEP_METHOD, function.name) or is_function(cls)
            kind = DATA if self.of_data else STEP if step else BUILD
            return Scope(function, kind, cls, True, reached, parameters)
        return Scope(function, self._kind(function, cls), cls, False, False, parameters)

    def _kind(self, function: AnyFunction, cls: ast.ClassDef | None) -> str:
        around = " ".join([cls.name, *(last_name(base) for base in cls.bases)]) if cls else ""
        if self.of_data or self.of_tests or matches(DATA_FUNCTION, function.name) or matches(DATA_CLASS, around):
            return DATA
        if cls is not None and function.name == "__call__" and not matches("loss|criterion|matcher|coder", around):
            return DATA  # a transform
        if function.name == "__init__" and not matches("loss|criterion|layer|matcher|coder|anchor|target", around):
            return DRIVER  # an object that holds a model, and the device it works on
        named = matches(DRIVER_CLASS, around) or matches(DRIVER_FUNCTION, function.name)
        return DRIVER if named or any(_drives(node) for node in own_nodes(function)) else HELPER


def _drives(node: ast.AST) -> bool:
    """Whether a line trains, evaluates or loads, as a script does and a helper does not."""
    loop = isinstance(node, ast.For) and "loader" in ast.unparse(node.iter)
    by_method = method_of(node) in ("backward", "zero_grad", "eval", "parse_args")
    return loop or by_method or last_name(node) in ("DataLoader", "optimizer")


def _target(call: ast.Call) -> ast.expr | None:
    """The function that a Thread is given."""
    return keyword(call, "target") or (call.args[1] if len(call.args) > 1 else None)


def is_function(cls: ast.ClassDef) -> bool:
    """Whether a class is an autograd Function."""
    return any(last_name(base) == "Function" for base in cls.bases)


@lru_cache(maxsize=1)  # asked for every method of a class, and they come one after the other
def reached_from_forward(cls: ast.ClassDef) -> set[str]:
    """The methods of a class that its forward calls through self, forward included."""
    methods = {item.name: item for item in cls.body if isinstance(item, FUNCTIONS)}
    reached, waiting = set(), [name for name in methods if name == "forward" or name.startswith("forward_")]
    while waiting:
        name = waiting.pop()
        if name in reached or name == "__init__":
            continue
        reached.add(name)
        waiting += [called for node in ast.walk(methods[name]) if (called := self_attribute(node)) in methods]
    return reached
