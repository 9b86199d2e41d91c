"""A rule with its reason and its fix, and a finding: a place where the code breaks a rule."""

import ast
from dataclasses import dataclass
from typing import NamedTuple

Found = tuple[ast.AST, str]  # the node, and the text of what was found there


class Rule(NamedTuple):
    """A rule: why code goes wrong on several GPUs, what to write instead, and which failure that prevents."""

    code: str
    name: str
    reason: str
    fix: str
    see: str = ""  # an entry of the catalogue: `python -m multigpu explain ENTRY`


@dataclass(frozen=True, order=True)
class Finding:
    """A place where code breaks a rule.

    Attributes:
        path: the file.
        cell: the cell of a notebook, from 1; 0 in a plain file.
        line: the line, from 1; in a notebook it counts within the cell.
        broken: the rule.
        what: the text of what was found.
    """

    path: str
    cell: int
    line: int
    broken: Rule
    what: str

    @property
    def rule(self) -> str:
        """The code of the rule, which a comment names to silence it."""
        return self.broken.code

    @property
    def where(self) -> str:
        """File and line, in the form that editors make links of."""
        return f"{self.path}:cell {self.cell}:{self.line}" if self.cell else f"{self.path}:{self.line}"

    @property
    def message(self) -> str:
        """The finding and its reason, in one line."""
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
