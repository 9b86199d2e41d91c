"""Rules on tensors that are followed through a function: FL002, FL005, FL006 and FL007."""

import ast
from collections.abc import Iterator

from . import constants
from .calls import Environment
from .finding import Found
from .flow import Flow
from .names import last_name, method_of
from .parameters import parameters
from .scopes import DATA, STEP, Program, Scope
from .values import UNKNOWN, union


def check(program: Program) -> Iterator[Found]:
    """Yield (node, rule, what was found)."""
    top = constants.reader(program.scopes[0], program)
    top.read(program.tree.body)
    of_file = constants.of_file(program, top)
    flows = _read_all(program, of_file)
    made, used = set(top.met), set()
    for scope, flow in flows:
        met = flow.met | _given_out(scope, flow, program)
        kept = {*of_file.values(), *(node for value in flow.attributes.values() for node in value.made)}
        used |= met & kept
        if scope.kind != DATA:
            made |= met - kept
            yield from _round_trips(scope, flow)
        if scope.reached:
            yield from ((node, "FL005", f"self.{name} keeps a tensor") for node, name in flow.kept)
    if not program.any_call("set_default_device", "set_default_tensor_type"):
        yield from ((node, "FL002", f"{last_name(node)}() without a device") for node in made)
    for node in used | constants.exported(program, of_file):
        yield node, "FL007", f"{_targets(node)}, a tensor that is no buffer"
    yield from ((node, "FL007", "a tensor as default") for node in _defaults(program))


def _read_all(program: Program, of_file: dict[str, ast.AST]) -> list[tuple[Scope, Flow]]:
    returns: Environment = {}
    flows: list[tuple[Scope, Flow]] = []
    for _ in range(2):  # what a function returns is known to its callers in the second reading
        flows = [(scope, _read(scope, program, of_file, returns)) for scope in program.scopes[1:]]
        returns = {}
        for scope, flow in flows:
            value = union(flow.returned)
            if value.made or value.arrays:
                returns[scope.name] = value
            elif scope.returns_no_tensor:
                returns[scope.name] = UNKNOWN
    return flows


def _read(scope: Scope, program: Program, of_file: dict[str, ast.AST], returns: Environment) -> Flow:
    names = {**constants.seen_by(scope, program, of_file), **parameters(scope, program)}
    flow = Flow(scope, program.names, names, constants.attributes(scope, program), returns)
    flow.read(scope.node.body)
    return flow


def _given_out(scope: Scope, flow: Flow, program: Program) -> frozenset[ast.AST]:
    """What a step returns to callers outside the file: they expect it on the device of what they gave."""
    if scope.kind != STEP or (scope.name != "forward" and scope.name in program.functions_called):
        return frozenset()
    returned = union(flow.returned)
    return returned.made | returned.scalar


def _round_trips(scope: Scope, flow: Flow) -> Iterator[Found]:
    """In a step every array is one too many; elsewhere one that is made into a tensor again."""
    for node in flow.left | flow.came_back if scope.kind == STEP else flow.came_back:
        leaves = method_of(node) == "numpy" or node in flow.left
        yield node, "FL006", "from tensor to array" if leaves else "from array back to tensor"


def _targets(node: ast.AST) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "this"


def _defaults(program: Program) -> Iterator[ast.AST]:
    """Tensors among the default values of arguments, which are made while the file is imported."""
    read = constants.reader(program.scopes[0], program)
    for scope in program.scopes:
        if not isinstance(scope.node, ast.Module):
            defaults = (*scope.node.args.defaults, *filter(None, scope.node.args.kw_defaults))
            yield from (default for default in defaults if read.value(default).made)
