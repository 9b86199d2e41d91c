"""Tensors that are made once: by a file while it is imported, by a class in its body or in `__init__`.

`.to()` and replicas only take what is registered: parameters and buffers.
"""

import ast

from .flow import Environment, Flow
from .names import FUNCTIONS, last_name, self_attribute
from .replicas import copied_classes, made_and_sent
from .scopes import BUILD, DATA, DRIVER, STEP, Program, Scope
from .values import ON_DEVICE, UNKNOWN, Value

REGISTERS = {"register_buffer", "register_parameter", "add_module", "Buffer", "Parameter"}


def reader(scope: Scope, program: Program, environment: Environment | None = None) -> Flow:
    """A reading of a scope that knows nothing of its surroundings yet."""
    return Flow(scope, program.names, environment or {}, {}, {})


def constant(node: ast.AST) -> Value:
    """A tensor on the CPU that a statement outside of the function made."""
    return Value(made=frozenset([node]))


def of_file(program: Program, top: Flow) -> dict[str, ast.AST]:
    """The tensors that a file makes while it is imported, by name."""
    found: dict[str, ast.AST] = {}
    for node in program.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = top.value(node.value)
            if value.made or (value.device and isinstance(node.value, ast.Call)):
                found[node.targets[0].id] = node
    return found


def seen_by(scope: Scope, program: Program, constants: dict[str, ast.AST]) -> Environment:
    """The file's tensors as a function sees them. A script's own functions may use its tensors: it has one device."""
    if scope.kind in (DRIVER, DATA):
        return {}
    everything = scope.kind == STEP or not program.is_script
    return {name: constant(node) for name, node in constants.items() if everything or name.isupper()}


def exported(program: Program, constants: dict[str, ast.AST]) -> set[ast.AST]:
    """Tensors of a file that does nothing but define: who imports them gets them on the CPU."""
    if program.is_script:
        return set()
    read = {node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return {node for name, node in constants.items() if name.isupper() and name not in read}


def attributes(scope: Scope, program: Program) -> Environment:
    """The attributes of a module and their values: tensors are on the device if they are registered."""
    if scope.cls is None or not scope.is_module:
        return {}
    methods = {item.name: item for item in scope.cls.body if isinstance(item, FUNCTIONS)}
    known = {**_of_class(scope.cls, program), **_of_init(methods.get("__init__"), program)}
    if "__init__" in methods and scope.cls in copied_classes(program):
        # A replica takes buffers along. What was sent to a device in __init__ stays on that one, for every replica.
        for name, node in made_and_sent(methods["__init__"], program):
            if known.get(name, UNKNOWN).device and not _registers(node):
                known[name] = constant(node)
    if methods.keys() & {"_apply", "cuda", "to"}:  # it moves them by itself
        return {name: UNKNOWN if value.made else value for name, value in known.items()}
    return known


def _registers(node: ast.AST) -> bool:
    return any(last_name(part) in REGISTERS for part in ast.walk(node) if isinstance(part, ast.Call))


def _of_class(cls: ast.ClassDef, program: Program) -> Environment:
    read = reader(Scope(program.tree, DRIVER), program)
    assigned = [item for item in cls.body if isinstance(item, ast.Assign)]
    read.read(list(assigned))
    return {
        last_name(target): constant(item) for item in assigned for target in item.targets if read.value(item.value).made
    }


def _of_init(init: ast.FunctionDef | ast.AsyncFunctionDef | None, program: Program) -> Environment:
    known: Environment = {}
    if init is None:
        return known
    read = reader(Scope(init, BUILD), program)
    read.read(init.body)
    for node in ast.walk(init):
        if isinstance(node, ast.Call) and last_name(node) in REGISTERS and node.args:
            if isinstance(node.args[0], ast.Constant):
                known[str(node.args[0].value)] = ON_DEVICE
        elif isinstance(node, ast.Assign) and (name := self_attribute(node.targets[0])):
            calls = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)]
            value = read.value(node.value)
            if any(last_name(call) in REGISTERS for call in calls) or program.names.called(node.value).startswith(
                "torch.nn."
            ):
                known[name] = ON_DEVICE
            elif name not in known or value.made:
                known[name] = constant(node) if value.made else value
    return known
