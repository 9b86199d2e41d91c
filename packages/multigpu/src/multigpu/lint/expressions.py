"""What an expression of a function may be: a tensor of the device, one made on the CPU, an array, a plain number."""

import ast
from abc import abstractmethod

from . import values
from .calls import Calls
from .names import self_attribute
from .values import PLAIN, UNKNOWN, Value, union


class Expressions(Calls):
    """What the expressions of one scope are, given what its names hold."""

    @abstractmethod
    def bind_loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """Give the variable of a loop the value of what it runs over."""

    def value(self, node: ast.AST) -> Value:
        """What an expression may be."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Slice():
                return PLAIN
            case ast.Lambda():
                return UNKNOWN
            case ast.Name():
                return self.environment.get(node.id, UNKNOWN)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp():
                return self.combine([self.value(node.left), self.value(node.right)])
            case ast.UnaryOp():
                return PLAIN if isinstance(node.op, ast.Not) else self.value(node.operand)
            case ast.Compare():
                operands = [self.value(part) for part in (node.left, *node.comparators)]
                is_test = any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
                return PLAIN if is_test else self.combine(operands)
            case ast.IfExp():
                self.value(node.test)
                chosen = union([self.value(node.body), self.value(node.orelse)])
                return chosen._replace(made=frozenset()) if chosen.device else chosen
            case ast.NamedExpr():
                self.bind(node.target, found := self.value(node.value), node)
                return found
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for part in node.generators:
                    self.bind_loop(part.target, part.iter)
                return self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
            case ast.Dict():
                return union([self.value(part) for part in node.values])
            case ast.Call():
                return self.call(node)
        return union([self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def _attribute(self, node: ast.Attribute) -> Value:
        if node.attr in values.PLAIN_ATTRIBUTES:
            return PLAIN
        if name := self_attribute(node):
            return self.attributes.get(name, UNKNOWN)
        return self.value(node.value)

    def _subscript(self, node: ast.Subscript) -> Value:
        held, index = self.value(node.value), self.value(node.slice)
        if index.device:  # the other way about is allowed: an index on the CPU into a tensor on a GPU
            self.met |= held.made
        return held
