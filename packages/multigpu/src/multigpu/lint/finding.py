"""What the linter says: a rule with its reason and its fix, and a place where the code breaks it."""

import ast
from dataclasses import dataclass
from typing import NamedTuple

Found = tuple[ast.AST, str]  # where, and what was found there


class Rule(NamedTuple):
    """One rule: why the code goes wrong on several GPUs, what to write instead, and the failure that it prevents."""

    code: str
    name: str
    reason: str
    fix: str
    see: str = ""  # an entry of the catalogue: `python -m multigpu explain ENTRY`


@dataclass(frozen=True, order=True)
class Finding:
    """One place. `line` counts from 1, in a notebook within the cell; `cell` is 0 in a plain file."""

    path: str
    cell: int
    line: int
    broken: Rule
    what: str

    @property
    def rule(self) -> str:
        """The code of the rule, as a comment that silences it names it."""
        return self.broken.code

    @property
    def where(self) -> str:
        """File and line, as editors make links of them."""
        return f"{self.path}:cell {self.cell}:{self.line}" if self.cell else f"{self.path}:{self.line}"

    @property
    def message(self) -> str:
        """What was found, and why it matters, in one line."""
        return f"{self.what}: {self.broken.reason}"

    def to_dict(self) -> dict[str, str | int]:
        """The finding as an object of `--json`."""
        place = {"cell": self.cell} if self.cell else {}
        return {
            "path": self.path,
            **place,
            "line": self.line,
            "rule": self.rule,
            "name": self.broken.name,
            "message": self.message,
            "fix": self.broken.fix,
            "explain": self.broken.see,
        }
