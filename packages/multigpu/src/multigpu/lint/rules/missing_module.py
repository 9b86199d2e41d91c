"""FL012: a method or attribute of the model that is looked up on its wrapper, without `.module`."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..flow import Flow
from ..names import last_name
from ..readings import Reading
from ..scopes import Scope
from ..wrappers import ATTRIBUTES, OF_DISTRIBUTED, is_distributed

RULE = Rule(
    "FL012",
    "missing-module",
    "DataParallel and DistributedDataParallel do not pass on the attributes of the model inside them: AttributeError",
    "ask the model itself: wrapped.module.name",
    "no-attribute",
)
CONDITIONS = (ast.If, ast.IfExp, ast.Try)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    scopes: list[tuple[Scope, Flow]] = [(reading.program.scopes[0], reading.top), *reading.flows]
    added = set().union(*(flow.added for flow in reading.everywhere))
    for scope, flow in scopes:
        known = told_apart(scope)
        for node, wrappers in flow.asked.items():
            distributed = any(is_distributed(wrapper, reading.program.names) for wrapper in wrappers)
            theirs = distributed and node.attr in OF_DISTRIBUTED
            own = node.attr in ATTRIBUTES or node.attr in added or node.attr.startswith("_") or theirs
            apart = all(reading.program.exclude_each_other(wrapper, node) for wrapper in wrappers)
            if not (own or apart) and ast.unparse(node.value) not in known:
                yield node, f"{ast.unparse(node)} of a model that line {first_line(wrappers)} wraps"


def first_line(wrappers: frozenset[ast.Call]) -> int:
    """The first line that wraps a model."""
    return min(wrapper.lineno for wrapper in wrappers)


def told_apart(scope: Scope) -> set[str]:
    """The models of a function for which it asks whether they are wrapped, or takes `.module` under a condition."""
    found = set()
    for node in scope.nodes:
        if isinstance(node, CONDITIONS):
            for part in ast.walk(node):
                if isinstance(part, ast.Attribute) and part.attr == "module":
                    found.add(ast.unparse(part.value))
                elif isinstance(part, ast.Call) and last_name(part) in ("isinstance", "hasattr") and part.args:
                    found.add(ast.unparse(part.args[0]))
    return found
