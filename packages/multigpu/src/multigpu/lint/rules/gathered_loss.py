"""FL010: a loss of each GPU, gathered by DataParallel into a vector, used as if it were one number."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name
from ..readings import Reading

RULE = Rule(
    "FL010",
    "gathered-loss",
    "DataParallel returns one loss of each GPU, a vector; backward() and item() want a single number",
    "loss = loss.mean() first, or .sum() of sums divided by the count of the whole batch",
    "backward-on-vector",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for flow in reading.everywhere:
        for node, outputs in flow.unreduced.items():
            if not all(reading.program.exclude_each_other(each.wrapper, node) for each in outputs):
                line = min(each.output.lineno for each in outputs)
                yield node, f"{_used(node)} of an output of DataParallel (line {line})"


def _used(node: ast.Call) -> str:
    return f"{last_name(node)}()" if isinstance(node.func, ast.Name) else f".{last_name(node)}()"
