"""All functions of a file, each followed line by line, and what they know of each other."""

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from . import constants
from .flow import Environment, Flow
from .parameters import parameters
from .scopes import Program, Scope
from .values import UNKNOWN, Value, union


@dataclass
class Reading:
    """A file that has been read, which every rule gets."""

    program: Program
    top: Flow = field(init=False)  # of the statements of the file itself
    flows: list[tuple[Scope, Flow]] = field(init=False)  # of its functions

    def __post_init__(self) -> None:
        self.top = constants.reader(self.program.scopes[0], self.program)
        self.top.read(self.program.tree.body)
        asked, unreduced = dict(self.top.asked), dict(self.top.unreduced)
        self.of_file = constants.of_file(self.program, self.top)
        # That has looked at every line once more, knowing of wrappers that come after it.
        self.top.asked, self.top.unreduced = asked, unreduced
        self.flows = []
        returns: Environment = {}
        for _ in range(2):  # a second reading knows what each function returns, keeps on self and passes to others
            self._given, self._wrapped_on_self = self._passed(), self._wrapped_by_class()
            self.flows = [(scope, self._read(scope, returns)) for scope in self.program.scopes[1:]]
            returns = self._returns()

    @property
    def everywhere(self) -> list[Flow]:
        """The statements of the file, and those of its functions."""
        return [self.top, *(flow for _, flow in self.flows)]

    def kept(self, flow: Flow) -> set[ast.AST]:
        """The statements that made the tensors which a function finds: in the file, and on `self`."""
        return {*self.of_file.values(), *(node for value in flow.attributes.values() for node in value.made)}

    def _read(self, scope: Scope, returns: Environment) -> Flow:
        names = {
            **constants.seen_by(scope, self.program, self.of_file),
            **self._models_of_file,
            **self._models_on_self(scope),
            **self._models_given(scope, parameters(scope, self.program)),
        }
        flow = Flow(scope, self.program.names, names, constants.attributes(scope, self.program), returns)
        flow.read(scope.node.body)
        return flow

    def _returns(self) -> Environment:
        known: Environment = {}
        for scope, flow in self.flows:
            value = union(flow.returned)
            if value.made or value.arrays:
                known[scope.name] = value
            elif value.wrapped or value.gathered:
                known[scope.name] = value._replace(device=True)
            elif scope.returns_no_tensor:
                known[scope.name] = UNKNOWN
        return known

    @cached_property
    def _models_of_file(self) -> Environment:
        """Models that the file itself has wrapped, which its functions may use."""
        return {name: value for name, value in self.top.environment.items() if value.wrapped}

    def _models_on_self(self, scope: Scope) -> Environment:
        """Models that another method of the class has wrapped, and keeps on self."""
        if scope.cls is None:
            return {}
        return {name: value for other, name, value in self._wrapped_on_self[id(scope.cls)] if other is not scope}

    def _wrapped_by_class(self) -> defaultdict[int, list[tuple[Scope, str, Value]]]:
        """The wrapped models that the last reading found on `self`, each with the method that wrapped it."""
        found = defaultdict(list)
        for scope, flow in self.flows:
            for name, value in flow.environment.items():
                if name.startswith("self.") and value.wrapped:
                    found[id(scope.cls)].append((scope, name, value))
        return found

    def _passed(self) -> defaultdict[tuple[str, int | str], list[Value]]:
        """What the last reading saw passed to each argument of each function, by name and position or keyword."""
        passed: defaultdict[tuple[str, int | str], list[Value]] = defaultdict(list)
        for flow in self.everywhere:
            for key, values in flow.passed.items():
                passed[key] += values
        return passed

    def _models_given(self, scope: Scope, known: Environment) -> Environment:
        """The arguments of a function, with those named as wrapped models that are so in every call of this file."""
        called = scope.cls.name if scope.cls is not None and scope.name == "__init__" else scope.name
        for position, parameter in enumerate(scope.parameters):
            given = self._given[called, position] + self._given[called, parameter.arg]
            if given and all(value.wrapped for value in given):
                known[parameter.arg] = union(given)._replace(device=True)
        return known
