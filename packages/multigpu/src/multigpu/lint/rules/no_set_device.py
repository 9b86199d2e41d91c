"""FL018: a process group of NCCL whose ranks never choose a GPU, in a file that uses the current one."""

import ast
from collections.abc import Iterator

from ..device_text import device_asked_for, named_devices
from ..finding import Found, Rule
from ..names import keyword
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL018",
    "no-set-device",
    "every rank works on GPU 0, and NCCL waits for ever or finds the same GPU twice",
    'torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) before the process group is made',
    "all-ranks-on-first-gpu",
)
# Functions that choose a GPU for the process; init_device_mesh does so by itself.
CHOOSE = (
    "set_device",
    "set_device_index",
    "init_device_mesh",
    "DeviceMesh",
    "Accelerator",
    "PartialState",
    "init_dist",
)
HINTS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if program.of_tests or program.any_call(*CHOOSE) or _chooses_otherwise(program):
        return
    joins = [node for node in ast.walk(program.tree) if _joins_nccl(node, program)]
    if joins and (used := _first_use(program)):
        line, what = used
        yield joins[0], f'init_process_group("nccl") without set_device(), and {what} on line {line}'


def _joins_nccl(node: ast.AST, program: Program) -> bool:
    """Whether a call makes a process group whose backend is NCCL by name."""
    if not isinstance(node, ast.Call) or not program.names.called(node).endswith("init_process_group"):
        return False
    backend = keyword(node, "backend") or (node.args[0] if node.args else None)
    return isinstance(backend, ast.Constant) and isinstance(backend.value, str) and "nccl" in backend.value


def _chooses_otherwise(program: Program) -> bool:
    """Whether a file gives a process its GPU in another way: by a computed number, or by the GPUs that it may see."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Constant) and node.value in HINTS:
            return True
        if isinstance(node, ast.keyword) and node.arg in ("device_id", "device_ids", "output_device"):
            return True
        if isinstance(node, ast.With) and any(
            program.names.called(item.context_expr).startswith("torch.cuda.device") for item in node.items
        ):
            return True
        if isinstance(node, ast.JoinedStr) and ast.unparse(node)[2:].startswith(("cuda:", "{device")):
            return True
        if isinstance(node, ast.BinOp) and any(
            isinstance(side, ast.Constant) and str(side.value).startswith("cuda:") for side in (node.left, node.right)
        ):
            return True
        if isinstance(node, ast.Call) and (_given_index(node) or "cuda:{}" in ast.unparse(node.func)):
            return True
    return False


def _given_index(call: ast.Call) -> bool:
    """Whether a call names a GPU by a value: `.cuda(rank)`, `.to(rank)`, `torch.device("cuda", rank)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "device":
        return len(call.args) > 1 or keyword(call, "index") is not None
    given = call.args[0] if call.args else keyword(call, "device")
    if name not in ("cuda", "to") or given is None:
        return False
    return "rank" in ast.unparse(given) or "gpu" in ast.unparse(given).lower()


def _first_use(program: Program) -> tuple[int, str] | None:
    """The first line that asks for the current GPU."""
    of_file = named_devices(program.tree)
    found = []
    for scope in program.scopes:
        constants = {**of_file, **named_devices(scope.node)}
        for node in scope.nodes:
            if isinstance(node, ast.Call) and device_asked_for(node, program.names, constants) == "cuda":
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                found.append((node.lineno, ".cuda()" if called == "cuda" else '"cuda"'))
    return min(found, default=None)
