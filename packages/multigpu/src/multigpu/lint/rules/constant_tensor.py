"""FL007: a tensor made once, by the file, the class, a default or `__init__`, that nothing takes along."""

import ast
from collections.abc import Iterator

from .. import constants
from ..finding import Found, Rule
from ..readings import Reading
from ..scopes import Program
from .factory_without_device import met

RULE = Rule(
    "FL007",
    "constant-tensor",
    "is made once, on one device, and neither .to() nor a replica takes it along",
    "self.register_buffer(name, tensor) in __init__; in a function, .to(x) where it is used",
    "constant-stays-behind",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    used: set[ast.AST] = set()
    for scope, flow in reading.flows:
        used |= met(scope, flow, reading.program) & reading.kept(flow)
    for node in used | constants.exported(reading.program, reading.of_file):
        yield node, f"{_targets(node)}, a tensor that is not a buffer"
    yield from ((node, "a tensor as default") for node in _defaults(reading.program))


def _targets(node: ast.AST) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "this"


def _defaults(program: Program) -> Iterator[ast.AST]:
    """Tensors among the default values of arguments, which are made while the file is imported."""
    read = constants.reader(program.scopes[0], program)
    for scope in program.scopes:
        if not isinstance(scope.node, ast.Module):
            defaults = (*scope.node.args.defaults, *filter(None, scope.node.args.kw_defaults))
            yield from (default for default in defaults if read.value(default).made)
