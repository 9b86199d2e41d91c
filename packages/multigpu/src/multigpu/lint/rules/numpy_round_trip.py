"""FL006: tensors that become arrays on the way of a step, or anywhere if they come back as tensors."""

from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import method_of
from ..readings import Reading
from ..scopes import DATA, STEP

RULE = Rule(
    "FL006",
    "numpy-round-trip",
    "waits for the GPU, computes on the CPU, carries no gradient, and has to find its device again",
    "stay in torch; where NumPy must be, come back with .to(x.device)",
    "cuda-to-numpy",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for scope, flow in reading.flows:
        if scope.kind == DATA:
            continue
        for node in flow.left | flow.came_back if scope.kind == STEP else flow.came_back:
            leaves = method_of(node) == "numpy" or node in flow.left
            yield node, "from tensor to array" if leaves else "from array back to tensor"
