"""What the linter says: rules with their reason and fix, and findings."""

import ast
from dataclasses import dataclass
from typing import NamedTuple

Found = tuple[ast.AST, str, str]  # where, the rule, and what was found, as a family of rules tells it


class Rule(NamedTuple):
    """One rule: its name, why the code goes wrong on several GPUs, and what to write instead."""

    name: str
    reason: str
    fix: str


RULES = {
    "FL000": Rule(
        "not-python-3",
        "searched by token instead, where a name may mean anything",
        "port it (print and except are the usual lines), and lint again",
    ),
    "FL001": Rule(
        "bare-cuda",
        "goes to the GPU that is current in this thread, and which that is, is up to the caller",
        "take the device from a tensor at hand: .to(x.device)",
    ),
    "FL002": Rule(
        "factory-without-device",
        "makes a tensor on the CPU, which then meets tensors of the device, or is returned in their place",
        "torch.zeros(..., device=x.device), x.new_zeros(...), or .to(x) before it is used",
    ),
    "FL003": Rule(
        "cuda-tensor-type",
        "names dtype and device in one, and the device is the current one",
        "say both: dtype=torch.float32, device=x.device",
    ),
    "FL004": Rule(
        "literal-device",
        "a replica, or a process, that owns another GPU has its tensors elsewhere",
        "take the device from a tensor at hand, or as an argument",
    ),
    "FL005": Rule(
        "tensor-kept-on-self",
        "a replica lives for one forward and takes it to its end; a list or dict is shared by all replicas",
        "return the tensor; state that has to last is a buffer, written in place",
    ),
    "FL006": Rule(
        "numpy-round-trip",
        "waits for the GPU, computes on the CPU, carries no gradient, and has to find its device again",
        "stay in torch; where NumPy must be, come back with .to(x.device)",
    ),
    "FL007": Rule(
        "constant-tensor",
        "is made once, on one device, and neither .to() nor a replica takes it along",
        "self.register_buffer(name, tensor) in __init__; in a function, .to(x) where it is used",
    ),
    "FL008": Rule(
        "callable-keeps-self",
        "holds the module it was made in: a replica that calls it computes with the original's weights, on their GPU",
        "write a method, and call it through self",
    ),
    "FL009": Rule(
        "item-in-loop",
        "waits for the GPU in every pass",
        "sum up .detach() tensors, and read .item() once, after the loop or every so many steps",
    ),
}


@dataclass(frozen=True, order=True)
class Finding:
    """One place. `line` counts from 1, in a notebook within the cell; `cell` is 0 in a plain file."""

    path: str
    cell: int
    line: int
    rule: str
    what: str

    @property
    def where(self) -> str:
        """File and line, as editors make links of them."""
        return f"{self.path}:cell {self.cell}:{self.line}" if self.cell else f"{self.path}:{self.line}"

    @property
    def message(self) -> str:
        """What was found, and why it matters, in one line."""
        return f"{self.what}: {RULES[self.rule].reason}"

    def to_dict(self) -> dict[str, str | int]:
        """The finding as an object of `--json`."""
        rule = RULES[self.rule]
        place = {"cell": self.cell} if self.cell else {}
        return {
            "path": self.path,
            **place,
            "line": self.line,
            "rule": self.rule,
            "name": rule.name,
            "message": self.message,
            "fix": rule.fix,
        }
