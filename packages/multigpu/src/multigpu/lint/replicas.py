"""The classes of a file whose objects DataParallel or DDP wraps, and the devices that they were given."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from .device_text import device_text, named_devices, of_settings
from .names import FUNCTIONS, last_name, self_attribute
from .scopes import Program
from .values import FACTORIES
from .wrappers import is_distributed, is_wrapper


def copied_classes(program: Program) -> frozenset[ast.ClassDef]:
    """The classes in a model that the file wraps in DataParallel: its own, those it builds, those it is given."""
    return wrapped_classes(program, False)


@lru_cache(maxsize=2)  # asked for every function of a file, and files are read one after the other
def wrapped_classes(program: Program, distributed: bool) -> frozenset[ast.ClassDef]:
    """The classes in a model that the file wraps in DDP (`distributed`) or in DataParallel."""
    classes = {node.name: node for node in ast.walk(program.tree) if isinstance(node, ast.ClassDef)}
    given = given_values(program)
    waiting = [call.args[0] for call in wrappers(program, distributed) if call.args]
    found: set[ast.ClassDef] = set()
    seen: set[str] = set()
    while waiting:
        for name in {last_name(part) for part in ast.walk(waiting.pop())} - seen - {""}:
            seen.add(name)
            waiting += given.get(name, [])
            if name in classes:
                found.add(classes[name])
                waiting.append(classes[name])  # type: ignore[arg-type]
    return frozenset(found)


def wrappers(program: Program, distributed: bool) -> list[ast.Call]:
    """The calls that wrap a model in DDP, or in DataParallel."""
    return [
        node
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Call)
        and is_wrapper(program.names.called(node))
        and is_distributed(node, program.names) == distributed
    ]


@lru_cache(maxsize=1)
def given_values(program: Program) -> dict[str, list[ast.expr]]:
    """The values that the file gives to each name, and to each attribute by its last name."""
    given = defaultdict(list)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                given[last_name(target)].append(node.value)
    return given


def made_and_sent(init: ast.AST, program: Program) -> Iterator[tuple[str, ast.Assign]]:
    """The attributes that `__init__` gives a tensor which it makes, whatever device it makes it on or sends it to."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and (name := self_attribute(node.targets[0])):
            value = node.value.elt if isinstance(node.value, ast.ListComp) else node.value
            if _is_made(value, program):
                yield name, node


def _is_made(node: ast.AST, program: Program) -> bool:
    """Whether an expression is a factory of torch, or what functions and methods of tensors make of one."""
    match node:
        case ast.BinOp():
            return _is_made(node.left, program) or _is_made(node.right, program)
        case ast.List() | ast.Tuple():
            return any(_is_made(part, program) for part in node.elts)
        case ast.Subscript():
            return _is_made(node.value, program)
        case ast.Call():
            name = program.names.called(node)
            if name.startswith("torch.") and not name.startswith("torch.nn."):
                is_factory = last_name(node) in FACTORIES and name.count(".") == 1
                return is_factory or any(_is_made(given, program) for given in node.args)
            return isinstance(node.func, ast.Attribute) and _is_made(node.func.value, program)
    return False


def numbered_devices(cls: ast.ClassDef, program: Program) -> dict[str, str]:
    """The attributes of a class that hold a GPU with a number, by a call of the file, a default or its `__init__`."""
    init = next((item for item in cls.body if isinstance(item, FUNCTIONS) and item.name == "__init__"), None)
    if init is None:
        return {}
    known = {**_named(program), **_of_calls(init, cls.name, program)}
    found = {}
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and (name := self_attribute(node.targets[0])):
            device = (
                ""
                if isinstance(node.value, ast.Constant) and not isinstance(node.value.value, str)
                else (device_text(node.value, known))
            )
            if ":" in device:
                found[name] = device
    return found


def _of_calls(init: ast.FunctionDef | ast.AsyncFunctionDef, name: str, program: Program) -> dict[str, str]:
    """The GPUs that the file gives to the arguments of a class, wherever it makes an object of it."""
    arguments = [given.arg for given in (*init.args.posonlyargs, *init.args.args)]
    defaults = zip(arguments[::-1], init.args.defaults[::-1], strict=False)
    found = {given: _device(value, program) for given, value in defaults}
    for node in _calls(program).get(name, []):
        given = [*zip(arguments[1:], node.args, strict=False), *((each.arg, each.value) for each in node.keywords)]
        found |= {key: device for key, value in given if key and (device := _device(value, program))}
    return found


@lru_cache(maxsize=1)  # asked for every class of a model
def _calls(program: Program) -> dict[str, list[ast.Call]]:
    """The calls of each plain name in the file."""
    calls = defaultdict(list)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls[node.func.id].append(node)
    return calls


def _device(value: ast.expr, program: Program) -> str:
    """The GPU that an argument is; a number alone may be anything."""
    if isinstance(value, ast.Constant) and not isinstance(value.value, str):
        return ""
    if isinstance(value, ast.Call) and last_name(value) == "device" and value.args:
        value = value.args[0]
    return device_text(value, _named(program))


@lru_cache(maxsize=1)
def _named(program: Program) -> dict[str, str]:
    """What holds a GPU, in the file itself and in its functions, also where settings name it."""
    named = {name: device for scope in program.scopes for name, device in named_devices(scope.node).items() if device}
    return named | of_settings(program.tree)
