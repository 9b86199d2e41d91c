"""FL003: `torch.cuda.FloatTensor`, as a name or in words."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name
from ..readings import Reading
from ..scopes import Program

RULE = Rule(
    "FL003",
    "cuda-tensor-type",
    "names dtype and device in one, and the device is the current one",
    "say both: dtype=torch.float32, device=x.device",
    "two-devices",
)
CUDA_TYPE = re.compile(r"torch\.cuda\.(Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Tensor$")


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for scope in reading.program.scopes:
        for node in scope.nodes:
            if _is_cuda_type(node, reading.program) and not _is_asked_only(node, scope.node):
                yield node, "torch.cuda tensor type"


def _is_cuda_type(node: ast.AST, program: Program) -> bool:
    if isinstance(node, ast.Call) and last_name(node) in ("type", "set_default_tensor_type") and node.args:
        named = node.args[0]
        return isinstance(named, ast.Constant) and bool(CUDA_TYPE.match(repr(named.value).strip("'")))
    return isinstance(node, ast.Attribute | ast.Name) and bool(CUDA_TYPE.match(program.names.full(node)))


def _is_asked_only(node: ast.AST, scope: ast.AST) -> bool:
    """Whether a type is only compared: `isinstance(x, torch.cuda.FloatTensor)`, or a comparison."""
    questions = [
        around
        for around in ast.walk(scope)
        if isinstance(around, ast.Compare)
        or (isinstance(around, ast.Call) and last_name(around) in ("isinstance", "issubclass"))
    ]
    return any(part is node for around in questions for part in ast.walk(around))
