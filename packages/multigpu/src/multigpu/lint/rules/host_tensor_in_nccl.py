"""FL037: a tensor that was made on the CPU, in a collective of NCCL."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword, last_name
from ..ranks import COLLECTIVES
from ..readings import Reading
from ..scopes import Program, Scope

RULE = Rule(
    "FL037",
    "host-tensor-in-nccl",
    "NCCL sends what is on a GPU, and this was made on the CPU: no backend for device type cpu",
    'device="cuda" where it is made, or init_process_group("cpu:gloo,cuda:nccl")',
    "no-cpu-backend",
)
FACTORIES = ("tensor", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn", "arange", "FloatTensor")
FIRST = COLLECTIVES - {"barrier", "new_group", "monitored_barrier", "broadcast_object_list", "gather_object"}
FIRST -= {"all_gather_object", "scatter_object_list", "all_gather", "all_to_all", "reduce_scatter", "scatter", "gather"}


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if not _nccl_alone(program) or program.any_call("set_default_device", "set_default_tensor_type"):
        return
    for scope in program.scopes:
        for node in scope.nodes:
            if (
                isinstance(node, ast.Call)
                and program.names.called(node) == f"torch.distributed.{last_name(node)}"
                and last_name(node) in FIRST
                and node.args
                and keyword(node, "group") is None
                and (made := _made_on_the_host(node.args[0], node.lineno, scope, program)) is not None
            ):
                yield made, f"{ast.unparse(node.args[0])} of the CPU in {last_name(node)}()"


def _nccl_alone(program: Program) -> bool:
    """Whether every group of all ranks that the file makes is NCCL's, by a word in the call itself."""
    calls = [node for node in ast.walk(program.tree) if last_name(node) == "init_process_group"]
    joins = [node for node in calls if isinstance(node, ast.Call)]
    named = [keyword(node, "backend") or (node.args[0] if node.args else None) for node in joins]
    return bool(joins) and all(isinstance(each, ast.Constant) and each.value == "nccl" for each in named)


def _made_on_the_host(given: ast.expr, line: int, scope: Scope, program: Program) -> ast.Call | None:
    """The line that made a tensor, if it is the only one that gives its name a value, and names no device."""
    if not isinstance(given, ast.Name):
        return None
    values = [
        node.value
        for node in scope.nodes
        if isinstance(node, ast.Assign) and given.id in map(ast.unparse, node.targets)
    ]
    if len(values) != 1 or not isinstance(values[0], ast.Call) or values[0].lineno > line:
        return None
    made = values[0]
    plain = program.names.called(made) in {f"torch.{name}" for name in FACTORIES}
    if not plain or any(each.arg in (None, "device") for each in made.keywords):
        return None
    return None if _follows_a_tensor(made) else made


def _follows_a_tensor(made: ast.Call) -> bool:
    """Whether as_tensor may have been given a tensor, whose device it keeps."""
    return last_name(made) == "as_tensor" and not isinstance(made.args[0] if made.args else None, ast.List | ast.Tuple)
