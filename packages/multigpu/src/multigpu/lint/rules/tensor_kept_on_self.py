"""FL005: a tensor that forward assigns to `self`, or puts into a list or dict of `self`."""

from collections.abc import Iterator

from ..finding import Found, Rule
from ..readings import Reading

RULE = Rule(
    "FL005",
    "tensor-kept-on-self",
    "a replica lives for one forward and takes it to its end; a list or dict is shared by all replicas",
    "return the tensor; state that has to last is a buffer, written in place",
    "attribute-lost",
)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    for scope, flow in reading.flows:
        if scope.reached:
            yield from ((node, f"self.{name} keeps a tensor") for node, name in flow.kept)
