"""FL013: weights whose names begin with `module.` in one place and do not in another."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..flow import Flow
from ..names import last_name, method_of
from ..readings import Reading
from ..scopes import Program, Scope
from .missing_module import first_line, told_apart

RULE = Rule(
    "FL013",
    "module-prefix",
    "a wrapper puts `module.` before the names of all weights, and a model without one does not know them",
    "save wrapped.module.state_dict(), and load into wrapped.module",
    "module-prefix",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if _renames(program.tree):
        return
    scopes: list[tuple[Scope, Flow]] = [(program.scopes[0], reading.top), *reading.flows]
    loaded = _loaded(program)
    into_wrapper = any(node.attr == "load_state_dict" for flow in reading.everywhere for node in flow.asked)
    sometimes = wrapped_sometimes(program)
    for scope, flow in scopes:
        known = told_apart(scope)
        for node, wrappers in flow.asked.items():
            apart = all(program.exclude_each_other(wrapper, node) for wrapper in wrappers)
            if node.attr != "state_dict" or apart or ast.unparse(node.value) in known:
                continue
            wrapped = first_line(wrappers)
            bare = [line for wrapper in wrappers for line in loaded.get(_inside(wrapper), ()) if line < wrapper.lineno]
            if wrappers <= sometimes:
                yield node, f"{ast.unparse(node)}(), of a model that line {wrapped} wraps under a condition"
            elif bare and not into_wrapper:
                yield node, f"{ast.unparse(node)}() of a wrapper, loaded without one on line {min(bare)}"


def _renames(tree: ast.AST) -> bool:
    """Whether the file knows of the prefix: it names it in a string, or calls torch's function that removes it."""
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ("module", "module."))
        or "consume_prefix" in last_name(node)
        for node in ast.walk(tree)
    )


def _loaded(program: Program) -> dict[str, list[int]]:
    """The lines on which a file loads weights, by the text of the model that gets them."""
    found: dict[str, list[int]] = {}
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call) and method_of(node) == "load_state_dict":
            found.setdefault(ast.unparse(node.func.value), []).append(node.lineno)  # type: ignore[attr-defined]
    return found


def _inside(wrapper: ast.Call) -> str:
    """The text of the model inside a wrapper, without calls that move it: `model` of `DataParallel(model.cuda())`."""
    inside = wrapper.args[0] if wrapper.args else wrapper
    while method_of(inside) in ("cuda", "to"):
        inside = inside.func.value  # type: ignore[attr-defined]
    return ast.unparse(inside)


def wrapped_sometimes(program: Program) -> set[ast.AST]:
    """The wrappers that an `if` makes while its other branch makes none."""
    found: set[ast.AST] = set()
    for node in ast.walk(program.tree):
        if isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
            branches = [{part for each in body for part in _wrappers(each)} for body in (node.body, node.orelse)]
            found |= branches[0] ^ branches[1] if not all(branches) else set()
    return found


def _wrappers(tree: ast.AST) -> Iterator[ast.AST]:
    return (part for part in ast.walk(tree) if isinstance(part, ast.Call) and "DataParallel" in last_name(part))
