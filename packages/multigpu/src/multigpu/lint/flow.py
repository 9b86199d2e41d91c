"""Follow the tensors of one function from line to line: which are on the device, which were made on the CPU.

The function is read in the order of its lines, loops twice. Nothing is run. Where a name cannot be followed it is
taken as harmless, except in a step of a model, where what comes from `self` and from the arguments is on the device.
"""

import ast
from itertools import chain

from .expressions import Expressions
from .names import keyword, last_name, method_of, self_attribute
from .values import PLAIN, UNKNOWN, Value, merge_branches, union


class Flow(Expressions):
    """The reading of one scope, statement by statement."""

    def read(self, statements: list[ast.stmt]) -> None:
        """Read statements in order."""
        for statement in statements:
            self._read_one(statement)

    def _read_one(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign() if node.value is not None:
                self.bind(node.target, self.value(node.value), node)
            case ast.AugAssign():
                self._augment(node)
            case ast.For() | ast.AsyncFor():
                for _ in range(2):
                    self.bind_loop(node.target, node.iter)
                    self.read(node.body)
                self.read(node.orelse)
            case ast.While():
                self.value(node.test)
                self.read(node.body * 2 + node.orelse)
            case ast.If():
                self.value(node.test)
                self._branches([node.body, node.orelse])
            case ast.Try():
                self.read(node.body)
                self._branches([handler.body for handler in node.handlers] + [[]])
                self.read(node.orelse + node.finalbody)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Return():
                self.returned.append(self.value(node.value) if node.value else PLAIN)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass  # a scope of its own
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)

    def _assign(self, node: ast.Assign) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=parts)) if len(names) == len(parts):
                for name, found in zip(names, [self.value(part) for part in parts], strict=True):
                    self.bind(name, found, node)
            case _:
                found = self.value(node.value)
                for target in node.targets:
                    self.bind(target, found, node)

    def _augment(self, node: ast.AugAssign) -> None:
        target, given = self.value(node.target), self.value(node.value)
        if given.device:
            self.met |= target.scalar  # a 0-d tensor may be added to a GPU's, but not take it in
        if not self_attribute(node.target):
            self.bind(node.target, self.combine([target, given]), node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        defaults = 0
        for item in node.items:
            self.value(item.context_expr)
            # torch.cuda.device(k) chooses among GPUs only: torch.zeros(3) inside it is on the CPU all the same.
            name = self.names.full(item.context_expr) or self.names.called(item.context_expr)
            defaults |= name.endswith("device") and "cuda" not in name
        self.default_device += defaults
        self.read(node.body)
        self.default_device -= defaults

    def _branches(self, bodies: list[list[ast.stmt]]) -> None:
        before, after = self.environment, []
        for body in bodies:
            self.environment = dict(before)
            self.read(body)
            after.append(self.environment)
        self.environment = {
            name: merge_branches(before.get(name), [there[name] for there in after if name in there])
            for name in set(chain.from_iterable(after))
        }

    def bind(self, target: ast.expr, value: Value, statement: ast.AST) -> None:
        """Give a name, or whatever is assigned to, its value."""
        match target:
            case ast.Name():
                self.environment[target.id] = value
            case ast.Tuple() | ast.List():
                for element in target.elts:
                    self.bind(element, value, statement)
            case ast.Starred():
                self.bind(target.value, value, statement)
            case ast.Attribute() | ast.Subscript():
                self._store(target, value, statement)

    def _store(self, target: ast.Attribute | ast.Subscript, value: Value, statement: ast.AST) -> None:
        held: ast.expr = target
        while isinstance(held, ast.Subscript):
            held = held.value
        name = self_attribute(held)
        if name and value.is_tensor:
            into_buffer = isinstance(target, ast.Subscript) and self.attributes.get(name, UNKNOWN).device
            if not into_buffer and not _is_moved_self(statement, name):
                self.kept.append((statement, name))
            self.met |= value.made if self.in_step else set()
        elif isinstance(held, ast.Name) and isinstance(target, ast.Subscript):
            # x[i] = y copies from any device; a dict or a list holds what is put into it
            known = self.environment.get(held.id, UNKNOWN)
            if not known.is_tensor:
                self.environment[held.id] = union([known, value])._replace(plain=False)

    def bind_loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """Give the variable of a loop the value of what it runs over."""
        match target, iterable:
            case ast.Tuple(elts=[count, each]), ast.Call() if last_name(iterable) in ("enumerate", "items"):
                self.bind(count, PLAIN, target)
                source = iterable.args[0] if iterable.args else iterable
                self.bind_loop(each, source)
            case ast.Tuple(elts=names), ast.Call(args=parts) if last_name(iterable) == "zip" and len(names) == len(
                parts
            ):
                for name, part in zip(names, parts, strict=True):
                    self.bind(name, self.value(part), target)
            case _:
                self.bind(target, self.value(iterable), target)


def _is_moved_self(statement: ast.AST, name: str) -> bool:
    """`self.anchors = self.anchors.to(x.device)`, or `out=self.anchors`: what is there already, moved or written to."""
    moved = statement.value if isinstance(statement, ast.Assign) else statement
    source = ""
    if isinstance(moved, ast.ListComp):  # a list of them
        source, moved = self_attribute(moved.generators[0].iter), moved.elt
    in_place = keyword(moved, "out") if isinstance(moved, ast.Call) else None
    if in_place is not None and self_attribute(in_place) == name:
        return True
    if method_of(moved) not in ("to", "cuda", "type_as"):
        return False
    return name in (source, self_attribute(moved.func.value))  # type: ignore[attr-defined]
