"""FL011: values that forward writes on `self` for later, and that vanish with the replica under DataParallel."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from ..finding import Found, Rule
from ..flow import is_moved_self
from ..names import FUNCTIONS, AnyFunction, method_of, self_attribute
from ..readings import Reading
from ..scopes import is_function, reached_from_forward

RULE = Rule(
    "FL011",
    "update-in-replica",
    "DataParallel runs forward on copies of the module, which are gone after it, and copies share lists and dicts",
    "write it outside forward, from what forward returns; a buffer that is written in place keeps what GPU 0 did",
    "attribute-lost",
)
FILLING = ("append", "extend", "insert", "appendleft")
COUNTED, FILLED, KEPT = "counted", "filled", "kept"


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for scope, flow in reading.flows:
        if not scope.reached or scope.cls is None or not _may_be_copied(scope.cls):
            continue
        tensors = {node for node, _ in flow.kept}  # FL005's
        buffers = {name for name, value in flow.attributes.items() if value.device}  # += writes into them
        made_anew, read_later = _of_class(scope.cls)
        for node in scope.nodes:
            for name, change in _changes(node) if node not in tensors else ():
                if change == FILLED and name not in made_anew:
                    yield node, f"self.{name} is filled in forward"
                elif change == COUNTED and name not in made_anew | buffers:
                    yield node, f"self.{name} is counted in forward"
                elif change == KEPT and name in read_later:
                    yield node, f"self.{name} is set in forward and read by {read_later[name]}()"


@lru_cache(maxsize=1)
def _may_be_copied(cls: ast.ClassDef) -> bool:
    """Whether it is a module of a model; an object with a forward that also trains is not."""
    plain = all(isinstance(base, ast.Name) and base.id == "object" for base in cls.bases)
    trains = any(method_of(node) in ("backward", "zero_grad") for node in ast.walk(cls))
    return not (plain or trains or is_function(cls))


@lru_cache(maxsize=1)  # the methods of a class come one after the other
def _of_class(cls: ast.ClassDef) -> tuple[set[str], dict[str, str]]:
    methods = _methods(cls)
    return _made_anew(methods), _read_later(methods)


def _methods(cls: ast.ClassDef) -> dict[str, tuple[AnyFunction, bool]]:
    """The methods of a class, each with whether forward reaches it."""
    reached = reached_from_forward(cls)
    return {item.name: (item, item.name in reached) for item in cls.body if isinstance(item, FUNCTIONS)}


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The attributes of self that a line changes, and how: from what they were, by filling a list, or anew."""
    match node:
        case ast.AugAssign() if name := self_attribute(node.target):
            yield name, FILLED if isinstance(node.value, ast.List | ast.Tuple | ast.ListComp) else COUNTED
        case ast.Assign() if not isinstance(node.value, ast.Constant):
            for target in node.targets:
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if (name := self_attribute(part)) and not is_moved_self(node, name):
                        yield name, COUNTED if _goes_on_from(node.value, name) else KEPT
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in FILLING:
            if name := self_attribute(owner):
                yield name, FILLED


def _goes_on_from(value: ast.expr, name: str) -> bool:
    """`self.steps + 1`, of self.steps."""
    return isinstance(value, ast.BinOp) and name in (self_attribute(value.left), self_attribute(value.right))


def _made_anew(methods: dict[str, tuple[AnyFunction, bool]]) -> set[str]:
    """Attributes that forward sets to something of its own first: a list that is emptied there is one of that call."""
    return {
        name
        for method, reached in methods.values()
        for node in (ast.walk(method) if reached else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
        if (name := self_attribute(target)) and name not in map(self_attribute, ast.walk(node.value))
    }


def _read_later(methods: dict[str, tuple[AnyFunction, bool]]) -> dict[str, str]:
    """Attributes that a method reads which forward does not call, and that does not set them itself."""
    if any(_gives_self_away(method) for method, reached in methods.values() if reached):
        return {}  # a function that gets self may call any method, within forward
    found: dict[str, str] = {}
    for title, (method, reached) in methods.items():
        if not reached and title != "__init__":
            used = [node for node in ast.walk(method) if isinstance(node, ast.Attribute) and self_attribute(node)]
            written = {node.attr for node in used if isinstance(node.ctx, ast.Store)}
            found |= {node.attr: title for node in used if node.attr not in written}
    return found


def _gives_self_away(method: AnyFunction) -> bool:
    return any(
        isinstance(given, ast.Name) and given.id == "self"
        for node in ast.walk(method)
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "super")
        for given in node.args
    )
