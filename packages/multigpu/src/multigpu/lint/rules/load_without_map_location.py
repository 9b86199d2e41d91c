"""FL014: `torch.load` that puts every tensor back on the GPU it was saved from, in code for several GPUs."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..habits import DATA_CLASS, NOT_WEIGHTS, matches
from ..names import keyword
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL014",
    "load-without-map-location",
    "puts tensors back on the GPU they were saved from: all ranks load onto one, and a machine with fewer GPUs cannot",
    'torch.load(file, map_location="cpu"), and .to(device) afterwards',
    "checkpoint-device",
)
SEVERAL = ("DataParallel", "DistributedDataParallel", "init_process_group", "set_device", "data_parallel")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if program.of_data or not program.any_call(*SEVERAL):
        return
    for scope in program.scopes:
        if scope.cls is None or not matches(DATA_CLASS, scope.cls.name):
            yield from ((node, "torch.load() without map_location") for node in scope.nodes if _follows(node, program))


def _follows(node: ast.AST, program: Program) -> bool:
    """Whether a call loads weights to the devices that the file names."""
    if not isinstance(node, ast.Call) or program.names.called(node) != "torch.load" or not node.args:
        return False
    told = len(node.args) > 1 or keyword(node, "map_location") is not None or any(not kw.arg for kw in node.keywords)
    return not told and not matches(NOT_WEIGHTS, ast.unparse(node.args[0]))
