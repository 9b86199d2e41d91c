"""Rules on how a device is named: FL001 (the current one), FL003 (in a type) and FL004 (by its number)."""

import ast
import re
from collections.abc import Iterator

from .device_text import device_argument, device_asked_for, device_text, named_devices
from .finding import Found
from .habits import MODEL, matches
from .names import last_name, method_of
from .scopes import DATA, DRIVER, HELPER, STEP, Program, Scope

CUDA_TYPE = re.compile(r"torch\.cuda\.(Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Tensor$")


def check(program: Program) -> Iterator[Found]:
    """Yield (node, rule, what was found)."""
    of_file = named_devices(program.tree)
    for scope in program.scopes:
        entered = _lines_inside_a_device(scope, program)
        literals = [*_literal_names(scope)]
        of_scope = named_devices(scope.node)
        told = {name for name in of_scope if name not in of_file or scope.kind != STEP}  # their own line is reported
        for node in scope.nodes:
            if _is_cuda_type(node, program) and not _is_asked_only(node, scope.node):
                yield node, "FL003", "torch.cuda tensor type"
            if not isinstance(node, ast.Call):
                continue
            device = device_asked_for(node, program.names, {**of_file, **of_scope})
            if program.of_tests and not scope.is_module:
                continue  # a test asks for its GPU on purpose
            if device == "cuda" and node.lineno not in entered and not _current_is_right(node, scope, program):
                spoken = ".cuda() without a device" if method_of(node) == "cuda" else 'device "cuda" without a number'
                yield node, "FL001", spoken
            elif device not in ("", "cuda") and not told & {last_name(given) for given in _given(node)}:
                literals.append((node, device))
        if len({device for _, device in literals}) > 1:
            continue  # parts of one model on several GPUs, on purpose
        for place, device in literals:
            if not _chosen_once(place, device, scope, program):
                yield place, "FL004", f"{device} by its number"


def _given(call: ast.AST) -> list[ast.expr]:
    return [*call.args, *(given.value for given in call.keywords)] if isinstance(call, ast.Call) else []


def _literal_names(scope: Scope) -> Iterator[tuple[ast.AST, str]]:
    """`device = "cuda:0"`, and `def f(x, device="cuda:0")` where f is no script's own function."""
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


def _is_cuda_type(node: ast.AST, program: Program) -> bool:
    if isinstance(node, ast.Call) and last_name(node) in ("type", "set_default_tensor_type") and node.args:
        named = node.args[0]
        return isinstance(named, ast.Constant) and bool(CUDA_TYPE.match(repr(named.value).strip("'")))
    return isinstance(node, ast.Attribute | ast.Name) and bool(CUDA_TYPE.match(program.names.full(node)))


def _is_asked_only(node: ast.AST, scope: ast.AST) -> bool:
    """Whether a type stands in a question: `isinstance(x, torch.cuda.FloatTensor)`, or a comparison."""
    questions = [
        around
        for around in ast.walk(scope)
        if isinstance(around, ast.Compare)
        or (isinstance(around, ast.Call) and last_name(around) in ("isinstance", "issubclass"))
    ]
    return any(part is node for around in questions for part in ast.walk(around))


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
    """Whether the current device is the one that is meant; docs/linter.md has the reasons."""
    if scope.name in ("cuda", "to", "_apply") or _in_data_parallel(node, scope):
        return True
    if scope.in_loader or scope.name in program.started_in_threads:
        return False  # a worker of a DataLoader may not touch a GPU, and a new thread starts on GPU 0
    if program.any_call("set_device"):
        return True  # one GPU a process, chosen once
    if isinstance(device_argument(node), ast.Name) and not program.any_call("init_process_group"):
        return True  # `device`, chosen once for the whole file, by whoever runs it
    if program.any_call("init_process_group"):
        return False  # every process would take GPU 0
    if scope.is_module:
        return scope.kind == STEP and program.any_call("DataParallel", "data_parallel")  # it enters the replica's GPU
    chooses = method_of(node) == "device" and _has_choice(node)
    held = node.func.value if isinstance(node.func, ast.Attribute) else node
    return scope.kind in (DRIVER, DATA) or chooses or matches(MODEL, last_name(held))


def _in_data_parallel(node: ast.Call, scope: Scope) -> bool:
    """Whether it moves the model that DataParallel wraps, whose home is the current device: before or after."""
    wrappers = [call for call in scope.nodes if isinstance(call, ast.Call) and "DataParallel" in last_name(call)]
    return "DataParallel" in ast.unparse(node) or any(part is node for call in wrappers for part in ast.walk(call))


def _chosen_once(node: ast.AST, device: str, scope: Scope, program: Program) -> bool:
    """Whether a script picks its device in one place: GPU 0, if there is a GPU; or where DataParallel wants it."""
    if scope.kind not in (DRIVER, HELPER) or scope.name in program.started_in_threads or device != "cuda:0":
        return False
    if program.any_call("init_process_group"):
        return False
    if program.names.called(node) == "torch.device" and _has_choice(node):
        return True
    by_name = isinstance(node, ast.Call) and isinstance(device_argument(node), ast.Name)
    return scope.kind == DRIVER and (by_name or program.any_call("DataParallel", "data_parallel"))


def _has_choice(node: ast.AST) -> bool:
    return any(isinstance(part, ast.IfExp) for part in ast.walk(node))
