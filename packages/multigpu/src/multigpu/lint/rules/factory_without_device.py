"""FL002: a tensor made on the CPU that meets tensors of the device, or is returned in their place."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..flow import Flow
from ..names import last_name
from ..readings import Reading
from ..scopes import DATA, STEP, Program, Scope
from ..values import union

RULE = Rule(
    "FL002",
    "factory-without-device",
    "makes a tensor on the CPU, which then meets tensors of the device, or is returned in their place",
    "torch.zeros(..., device=x.device), x.new_zeros(...), or .to(x) before it is used",
    "two-devices",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    if reading.program.any_call("set_default_device", "set_default_tensor_type"):
        return
    made = set(reading.top.met)
    for scope, flow in reading.flows:
        if scope.kind != DATA:
            made |= met(scope, flow, reading.program) - reading.kept(flow)
    yield from ((node, f"{last_name(node)}() without a device") for node in made)


def met(scope: Scope, flow: Flow, program: Program) -> set[ast.AST]:
    """Tensors that were made on the CPU and are used among tensors of the device, or returned in their place."""
    return flow.met | _given_out(scope, flow, program)


def _given_out(scope: Scope, flow: Flow, program: Program) -> frozenset[ast.AST]:
    """The tensors that a step returns to callers outside the file, who expect them on the device of their arguments."""
    if scope.kind != STEP or (scope.name != "forward" and scope.name in program.functions_called):
        return frozenset()
    returned = union(flow.returned)
    return returned.made | returned.scalar
