"""Functions of Accelerate and of torch's state dicts that wait for every rank, as the collectives beneath them do."""

import ast
from functools import lru_cache

from .names import FUNCTIONS, keyword, last_name, method_of
from .scopes import Program
from .values import words

# Methods of an Accelerator. No other library has the first two, so the name of their owner does not matter.
ITS_OWN = words("gather_for_metrics wait_for_everyone")
OF_ACCELERATOR = ITS_OWN | words("backward gather pad_across_processes reduce")
OF_UTILS = words("broadcast broadcast_object_list gather gather_object pad_across_processes reduce wait_for_everyone")
STATE_DICTS = "torch.distributed.checkpoint.state_dict."
# The option that makes the ranks put a state dict together, by the beginning of the function's name.
ASKED = {"get_": "full_state_dict", "set_": "broadcast_from_rank0"}


def of_accelerate(node: ast.AST, program: Program) -> str:
    """The method or function of Accelerate that a call calls, if it waits for every rank, else ""."""
    name, method = program.names.called(node), method_of(node)
    if name.startswith("accelerate.utils.") and last_name(node) in OF_UTILS:
        return last_name(node)
    if method not in OF_ACCELERATOR or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    owner = node.func.value
    known = method in ITS_OWN or last_name(owner) == "accelerator" or ast.unparse(owner) in _accelerators(program)
    return f"{ast.unparse(owner)}.{method}" if known else ""


@lru_cache(maxsize=1)  # asked for every call of a file, and files are read one after the other
def _accelerators(program: Program) -> frozenset[str]:
    """The names that a file gives to an Accelerator."""
    return frozenset(
        ast.unparse(target)
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign) and program.names.called(node.value) == "accelerate.Accelerator"
        for target in node.targets
    )


def gathered_state(node: ast.AST, program: Program) -> str:
    """The function of torch's state dicts that a call calls, if it puts sharded weights together, else ""."""
    name = program.names.called(node)
    if not name.startswith(STATE_DICTS) or not isinstance(node, ast.Call):
        return ""
    asked = next((word for begins, word in ASKED.items() if last_name(node).startswith(begins)), "")
    options = keyword(node, "options")
    options = _given(options, node, program) if isinstance(options, ast.Name) else options
    value = keyword(options, asked) if asked and isinstance(options, ast.Call) else None
    return last_name(node) if isinstance(value, ast.Constant) and value.value is True else ""


def _given(name: ast.Name, node: ast.Call, program: Program) -> ast.expr | None:
    """The value that a name gets in the function around a node, or in the file; None if it gets several."""
    for around in program.around(node):
        if isinstance(around, (*FUNCTIONS, ast.Module)):
            given = [
                each.value
                for each in ast.walk(around)
                if isinstance(each, ast.Assign) and name.id in map(ast.unparse, each.targets)
            ]
            if given:
                return given[0] if len(given) == 1 else None
    return None
