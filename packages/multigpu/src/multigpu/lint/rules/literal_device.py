"""FL004: a GPU by its number, however the text is put together."""

import ast
from collections.abc import Iterator

from ..device_text import (
    device_argument,
    device_asked_for,
    device_text,
    has_choice,
    named_devices,
    of_settings,
)
from ..finding import Found, Rule
from ..habits import matches
from ..names import last_name
from ..readings import Reading
from ..replicas import copied_classes, numbered_devices
from ..scopes import DRIVER, HELPER, STEP, Program, Scope

RULE = Rule(
    "FL004",
    "literal-device",
    "a replica, or a process, that owns another GPU has its tensors elsewhere",
    "take the device from a tensor at hand, or as an argument",
    "two-devices",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    of_file = named_devices(program.tree)
    for scope in program.scopes:
        literals = [*_literal_names(scope), *_literal_calls(scope, program, of_file)]
        if len({device for _, device in literals}) > 1:
            continue  # parts of one model on several GPUs, on purpose
        for place, device in literals:
            if not _chosen_once(place, device, scope, program):
                yield place, f"{device} by its number"
    yield from _kept_numbers(program)


def _kept_numbers(program: Program) -> Iterator[Found]:
    """Calls in a step of a copied model that take a device with a number from `self`, or from settings."""
    copied, told = copied_classes(program), of_settings(program.tree)
    kept = {cls: numbered_devices(cls, program) for cls in copied}
    for scope in program.scopes:
        if scope.cls not in copied or scope.kind != STEP:
            continue
        known = told | {f"self.{name}": device for name, device in kept[scope.cls].items()}
        for node in scope.nodes:
            asked = device_argument(node) if isinstance(node, ast.Call) else None
            name = ast.unparse(asked) if asked is not None else ""
            if ":" in known.get(name, ""):
                yield node, f"{name}, which is {known[name]} in every replica"


def _literal_names(scope: Scope) -> Iterator[tuple[ast.AST, str]]:
    """`device = "cuda:0"`, and `def f(x, device="cuda:0")` unless f is a script's own function."""
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and matches("device|gpu|cuda", last_name(node.targets[0])):
            yield from _literal(node, node.value)
    if not isinstance(scope.node, ast.Module) and scope.kind != DRIVER:
        arguments = scope.node.args
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            yield from _literal(default, default)


def _literal(place: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    device = device_text(value, {})
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and ":" in device:
        yield place, device


def _literal_calls(scope: Scope, program: Program, of_file: dict[str, str]) -> Iterator[tuple[ast.AST, str]]:
    """Calls with a GPU by its number, in their own text or by a name whose line is not reported itself."""
    if program.of_tests and not scope.is_module:
        return  # a test asks for its GPU on purpose
    of_scope = named_devices(scope.node)
    own = {name for name, device in of_scope.items() if device}
    told = {name for name in own if name not in of_file or scope.kind != STEP}  # their own line is reported
    for node in scope.nodes:
        if isinstance(node, ast.Call):
            device = device_asked_for(node, program.names, {**of_file, **of_scope})
            given = (*node.args, *(given.value for given in node.keywords))
            if device not in ("", "cuda") and not told & {last_name(argument) for argument in given}:
                yield node, device


def _chosen_once(node: ast.AST, device: str, scope: Scope, program: Program) -> bool:
    """Whether a script picks its device in one place: GPU 0, if there is a GPU; or the GPU that DataParallel needs."""
    if scope.kind not in (DRIVER, HELPER) or scope.name in program.started_in_threads or device != "cuda:0":
        return False
    if program.any_call("init_process_group"):
        return False
    if program.names.called(node) == "torch.device" and has_choice(node):
        return True
    by_name = isinstance(node, ast.Call) and isinstance(device_argument(node), ast.Name)
    return scope.kind == DRIVER and (by_name or program.any_call("DataParallel", "data_parallel"))
