"""FL001: the GPU that is current in this thread, in code whose caller decides which GPU that is."""

import ast
from collections.abc import Iterator

from ..device_text import device_argument, device_asked_for, has_choice, named_devices
from ..finding import Found, Rule
from ..habits import MODEL, matches
from ..names import last_name, method_of
from ..readings import Reading
from ..scopes import DATA, DRIVER, STEP, Program, Scope

RULE = Rule(
    "FL001",
    "bare-cuda",
    "goes to the GPU that is current in this thread, and which that is, is up to the caller",
    "take the device from a tensor at hand: .to(x.device)",
    "two-devices",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    of_file = named_devices(program.tree)
    for scope in program.scopes:
        if program.of_tests and not scope.is_module:
            continue  # a test asks for its GPU on purpose
        entered = _lines_inside_a_device(scope, program)
        wrapped = _in_data_parallel(scope)
        constants = {**of_file, **named_devices(scope.node)}
        for node in scope.nodes:
            if not isinstance(node, ast.Call) or device_asked_for(node, program.names, constants) != "cuda":
                continue
            if node.lineno not in entered and not (node in wrapped or _current_is_right(node, scope, program)):
                yield (
                    node,
                    ".cuda() without a device" if method_of(node) == "cuda" else 'device "cuda" without a number',
                )


def _lines_inside_a_device(scope: Scope, program: Program) -> set[int]:
    """The lines inside `with torch.cuda.device(...)`."""
    lines: set[int] = set()
    for node in scope.nodes:
        if isinstance(node, ast.With):
            entered = [program.names.called(item.context_expr) for item in node.items]
            if any(name.startswith("torch.cuda.device") for name in entered):
                lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _current_is_right(node: ast.Call, scope: Scope, program: Program) -> bool:
    """Whether the current device is the right one; docs/linter.md has the reasons."""
    if scope.name in ("cuda", "to", "_apply") or "DataParallel" in ast.unparse(node):
        return True
    if scope.in_loader or scope.name in program.started_in_threads:
        return False  # a worker of a DataLoader may not touch a GPU, and a new thread starts on GPU 0
    if program.any_call("set_device", "set_device_index", "init_device_mesh"):
        return True  # one GPU a process, chosen once
    if isinstance(device_argument(node), ast.Name) and not program.any_call("init_process_group"):
        return True  # `device`, chosen once for the whole file, by whoever runs it
    if program.any_call("init_process_group"):
        return False  # every process would take GPU 0
    if scope.is_module:
        return scope.kind == STEP and program.any_call("DataParallel", "data_parallel")  # it enters the replica's GPU
    chooses = method_of(node) == "device" and has_choice(node)
    held = node.func.value if isinstance(node.func, ast.Attribute) else node
    return scope.kind in (DRIVER, DATA) or chooses or matches(MODEL, last_name(held))


def _in_data_parallel(scope: Scope) -> set[ast.AST]:
    """The nodes inside a call of DataParallel: a model that it wraps, then or later, belongs on the current device."""
    wrappers = [call for call in scope.nodes if isinstance(call, ast.Call) and "DataParallel" in last_name(call)]
    return {part for call in wrappers for part in ast.walk(call)}
