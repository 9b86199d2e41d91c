"""All functions of a file, each followed line by line, and what they know of each other."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from . import constants
from .flow import Environment, Flow
from .parameters import parameters
from .scopes import Program, Scope
from .values import UNKNOWN, Value, union


@dataclass
class Reading:
    """A file that has been read: what every rule is given."""

    program: Program
    top: Flow = field(init=False)  # of the statements of the file itself
    flows: list[tuple[Scope, Flow]] = field(init=False)  # of its functions

    def __post_init__(self) -> None:
        self.top = constants.reader(self.program.scopes[0], self.program)
        self.top.read(self.program.tree.body)
        self.of_file = constants.of_file(self.program, self.top)
        self.flows, returns = [], {}
        for _ in range(2):  # what a function returns is known to its callers in the second reading
            self.flows = [(scope, self._read(scope, returns)) for scope in self.program.scopes[1:]]
            returns = self._returns()

    def kept(self, flow: Flow) -> set[ast.AST]:
        """The statements that made the tensors which a function finds: in the file, and on `self`."""
        return {*self.of_file.values(), *(node for value in flow.attributes.values() for node in value.made)}

    def _read(self, scope: Scope, returns: Mapping[str, Value]) -> Flow:
        names = {**constants.seen_by(scope, self.program, self.of_file), **parameters(scope, self.program)}
        flow = Flow(scope, self.program.names, names, constants.attributes(scope, self.program), returns)
        flow.read(scope.node.body)
        return flow

    def _returns(self) -> Environment:
        known: Environment = {}
        for scope, flow in self.flows:
            value = union(flow.returned)
            if value.made or value.arrays:
                known[scope.name] = value
            elif scope.returns_no_tensor:
                known[scope.name] = UNKNOWN
        return known
