"""FL008: a lambda, a bound method or a partial that keeps the module it was made in."""

import ast
from collections.abc import Iterator, Mapping

from ..finding import Found, Rule
from ..habits import matches
from ..names import FUNCTIONS, last_name, own_nodes, self_attribute
from ..readings import Reading

RULE = Rule(
    "FL008",
    "callable-keeps-self",
    "holds the module it was made in: a replica that calls it computes with the original's weights, on their GPU",
    "write a method, and call it through self",
    "two-devices",
)
HOOKS = {"register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook"}


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for cls in reading.program.module_classes():
        if matches("Parallel$", cls.name):
            continue  # it wraps the model that is replicated, and is not replicated itself
        methods = {item.name for item in cls.body if isinstance(item, FUNCTIONS) and not _is_property(item)}
        for method in (item for item in cls.body if isinstance(item, FUNCTIONS)):
            plain = _plain_attributes(method)
            local = _local_functions(method)
            for node in own_nodes(method):
                for kept in _kept_by(node):
                    kept = _lambda_named(kept, local)
                    if what := _keeps_self(kept, methods, plain, local):
                        yield kept if isinstance(kept, ast.Lambda) else node, what


def _local_functions(method: ast.AST) -> dict[str, ast.AST]:
    """The functions and lambdas that a method names."""
    found: dict[str, ast.AST] = {}
    for node in ast.walk(method):
        if isinstance(node, FUNCTIONS) and node is not method:
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found |= {last_name(target): node.value for target in node.targets if isinstance(target, ast.Name)}
    return found


def _lambda_named(kept: ast.AST, local: Mapping[str, ast.AST]) -> ast.AST:
    named = local.get(kept.id) if isinstance(kept, ast.Name) else None
    return named if isinstance(named, ast.Lambda) else kept


def _kept_by(node: ast.AST) -> list[ast.AST]:
    """The callables that an assignment to self, a container of self, or a hook keeps."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        own = node.value is not None and any(_is_own(target) for target in targets)
        return list(_parts(node.value)) if own and node.value is not None else []
    if isinstance(node, ast.Call) and last_name(node) in HOOKS:
        return list(node.args[:1])
    if isinstance(node, ast.Call) and _fills_self(node):
        return [part for given in node.args for part in _parts(given) if isinstance(part, ast.Lambda)]
    return []


def _fills_self(call: ast.Call) -> bool:
    """`self.functions.append(...)`, `self.table.update(...)`, `setattr(self, ...)`."""
    if last_name(call) == "setattr":
        return bool(call.args) and last_name(call.args[0]) == "self"
    return last_name(call) in ("append", "update") and any(self_attribute(part) for part in ast.walk(call.func))


def _is_own(target: ast.AST) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    return bool(self_attribute(target))


def _parts(value: ast.AST) -> Iterator[ast.AST]:
    """The parts of a container, a choice, or a call of something else; any other expression itself."""
    match value:
        case ast.Dict():
            for part in value.values:
                yield from _parts(part)
        case ast.List() | ast.Tuple() | ast.Set():
            for part in value.elts:
                yield from _parts(part)
        case ast.IfExp():
            yield from _parts(value.body)
            yield from _parts(value.orelse)
        case ast.ListComp():
            yield from _parts(value.elt)
        case ast.DictComp():
            yield from _parts(value.value)
        case ast.Call() if last_name(value) != "partial":
            for part in (*value.args, *(given.value for given in value.keywords)):
                yield from (found for found in _parts(part) if isinstance(found, ast.Lambda))
        case _:
            yield value


def _keeps_self(kept: ast.AST, methods: set[str], plain: set[str], local: Mapping[str, ast.AST]) -> str:
    if isinstance(kept, ast.Lambda):
        return "a lambda with self in it" if _uses_self(kept.body, plain) else ""
    if isinstance(kept, ast.Name) and kept.id in local:
        return f"{kept.id}() with self in it" if _uses_self(local[kept.id], plain) else ""
    if isinstance(kept, ast.Call):
        return _partial_keeps(kept, methods, plain)
    return f"the bound method self.{kept.attr}" if self_attribute(kept) in methods else ""  # type: ignore[attr-defined]


def _partial_keeps(partial: ast.Call, methods: set[str], plain: set[str]) -> str:
    """The text of what a partial keeps of self, by its method or by its arguments; "" if it keeps nothing."""
    if partial.args and self_attribute(partial.args[0]) in methods:
        return "a partial of a method"
    for value in (*partial.args, *(given.value for given in partial.keywords)):
        name = self_attribute(value)
        if (name and name not in plain) or (isinstance(value, ast.Name) and value.id == "self"):
            return f"a partial that is given {ast.unparse(value)}"
    return ""


def _uses_self(body: ast.AST, plain: set[str]) -> bool:
    """Whether a body reads more of self than numbers, which are the same in every replica."""
    used = {self_attribute(node) for node in ast.walk(body) if self_attribute(node)}
    called = {self_attribute(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)}
    bare = sum(isinstance(node, ast.Name) and node.id == "self" for node in ast.walk(body))
    read = sum(bool(self_attribute(node)) for node in ast.walk(body))
    return bool(used - plain) or bool(used & called) or bare > read


def _plain_attributes(method: ast.AST) -> set[str]:
    """Attributes that hold a number or a word: assigned from a constant, an argument, or arithmetic on them."""
    found = {"training"}
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Name | ast.BinOp):
            found |= {self_attribute(target) for target in node.targets} - {""}
    return found


def _is_property(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in method.decorator_list)
