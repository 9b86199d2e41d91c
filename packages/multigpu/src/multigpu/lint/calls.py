"""What a call gives: a factory of torch, an operation, a method of a tensor, NumPy, a module, or a function unknown."""

import ast
from abc import ABC, abstractmethod

from . import habits, values
from .habits import matches
from .names import Names, last_name, method_of, self_attribute
from .scopes import DRIVER, STEP, Scope
from .values import ON_DEVICE, PLAIN, UNKNOWN, Value, made_among_others, union

Environment = dict[str, Value]
CPU = ("'cpu'", "torch.device('cpu')")


class Calls(ABC):
    """The calls of one scope; the sets hold what was met on the way."""

    def __init__(
        self, scope: Scope, names: Names, environment: Environment, attributes: Environment, returns: Environment
    ) -> None:
        self.names, self.environment, self.attributes, self.returns = names, environment, attributes, returns
        self.in_step, self.in_driver = scope.kind == STEP, scope.kind == DRIVER
        self.met: set[ast.AST] = set()  # made on the CPU, and used among tensors of the device
        self.left: set[ast.AST] = set()  # where tensors became arrays
        self.came_back: set[ast.AST] = set()  # both ends of a way from tensor to array to tensor
        self.kept: list[tuple[ast.AST, str]] = []  # what keeps a tensor on self, and in which attribute
        self.returned: list[Value] = []
        self.moves = False  # whether anything was sent to a device so far
        self.default_device = 0  # how many `with torch.device(...)` the line stands in

    @abstractmethod
    def value(self, node: ast.AST) -> Value:
        """What an expression may be."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value, statement: ast.AST) -> None:
        """Give a name, or whatever is assigned to, its value."""

    def combine(self, operands: list[Value]) -> Value:
        """One operation; a tensor of the CPU among those of the device is what FL002 speaks of."""
        together = union(operands)
        if not together.device:  # beside an unknown tensor, what was 0-d is so no longer
            return together._replace(scalar=frozenset()) if UNKNOWN in operands else together
        self.met |= made_among_others(operands)
        return Value(device=True, arrays=together.arrays, guessed=together.guessed)

    def call(self, node: ast.Call) -> Value:
        """What a call gives."""
        name, method = self.names.called(node), method_of(node)
        arguments = [self.value(given) for given in (*node.args, *(given.value for given in node.keywords))]
        if self._scatters(node, name):
            return ON_DEVICE
        if name in values.PLAIN_FUNCTIONS or matches(habits.COUNTING_FUNCTION, last_name(node)):
            return PLAIN
        if name.startswith("torch."):
            return self._torch(node, name, arguments)
        if name.startswith("numpy."):
            return self._numpy_function(node, union(arguments))
        if matches(habits.MOVING_FUNCTION, last_name(node)):
            return self._sent()
        if name == "setattr" and len(arguments) == 3:
            self.bind(ast.Attribute(node.args[0], "a chosen name"), arguments[2], node)
            return PLAIN
        if matches(habits.ARRAY_TO_TENSOR, last_name(node)) and (arrays := union(arguments).arrays):
            return self._came_back(node, arrays)
        if isinstance(node.func, ast.Attribute) and not self_attribute(node.func):
            return self._method(node, method, arguments)
        return self._unknown(node, arguments)

    def _scatters(self, node: ast.Call, name: str) -> bool:
        """Whether it takes inputs from anywhere, as nn.DataParallel does."""
        built_here = self.names.called(node.func).endswith("DataParallel")  # DataParallel(net)(x)
        return built_here or name.endswith(("DataParallel", "data_parallel")) or last_name(node) in self.names.wrapped

    def _torch(self, node: ast.Call, name: str, arguments: list[Value]) -> Value:
        last, together = name.rsplit(".", 1)[-1], union(arguments)
        if last in values.FACTORIES and name.count(".") == 1:
            return self._factory(node, last, together)
        if name.startswith("torch.cuda.") and last.endswith("Tensor"):
            return ON_DEVICE
        if last in values.JOINING:  # what comes out is no longer 0-d
            arguments = [value._replace(made=value.made | value.scalar) for value in arguments]
            together = union(arguments)
            if together.device:
                self.met |= together.made  # within one list, too
        return self.combine(arguments)

    def _factory(self, node: ast.Call, last: str, given: Value) -> Value:
        if given.arrays and last in values.FROM_ARRAY:
            return self._came_back(node, given.arrays)
        if self.default_device or any(keyword.arg in ("device", "out", None) for keyword in node.keywords):
            return ON_DEVICE
        if given.device and last in values.FROM_TENSOR:
            return ON_DEVICE
        if last in ("tensor", "scalar_tensor") and node.args and _is_number(node.args[0]):
            return Value(scalar=frozenset([node]))
        return Value(made=frozenset([node]))

    def _numpy_function(self, node: ast.Call, given: Value) -> Value:
        if not (given.host or (given.device and not given.guessed)):
            return Value(arrays=given.arrays, plain=given.plain)
        self.left.add(node)
        return Value(arrays=given.arrays | {node})

    def _came_back(self, node: ast.AST, arrays: frozenset[ast.AST]) -> Value:
        self.came_back |= {node, *arrays}
        return ON_DEVICE

    def _sent(self) -> Value:
        self.moves = True
        return ON_DEVICE

    def _method(self, node: ast.Call, method: str, arguments: list[Value]) -> Value:
        owner = node.func.value  # type: ignore[attr-defined]
        held = self.value(owner)
        if method in values.PLAIN_METHODS or (method == "type" and not node.args):
            return PLAIN
        if method == "numpy":
            return self._to_array(node, held)
        if method in ("cpu", "pin_memory") or (method == "to" and node.args and ast.unparse(node.args[0]) in CPU):
            return Value(arrays=held.arrays, host=True)
        if self._is_move(node, method):
            return self._sent()
        if method in values.FOLLOWERS:
            return ON_DEVICE
        if method in values.KEEPS_DEVICE:
            return held
        if method in values.FILLING and not (method == "add" and held.is_tensor):
            return self._put_into(node, owner, held, union(arguments))
        if held.is_tensor:
            return self.combine([held, *arguments])
        return self._unknown(node, arguments if self_attribute(owner) else [held, *arguments])

    def _to_array(self, node: ast.AST, held: Value) -> Value:
        if held.plain or held.scalar or (held.made and not held.device):
            return UNKNOWN
        self.left.add(node)
        return Value(arrays=frozenset([node]))

    def _is_move(self, node: ast.Call, method: str) -> bool:
        if method == "type" and node.args:
            return "cuda" in ast.unparse(node.args[0]) or method_of(node.args[0]) == "type"
        given = [*node.args, *(given.value for given in node.keywords if given.arg in ("device", "other", None))]
        is_move = method == "to" and given and not values.is_dtype(self.names.full(given[0]))
        return method in ("cuda", "type_as") or bool(is_move)

    def _put_into(self, node: ast.Call, container: ast.expr, held: Value, given: Value) -> Value:
        if isinstance(container, ast.Name):
            self.environment[container.id] = union([held, given])._replace(plain=False)
        elif (name := self_attribute(container)) and given.is_tensor:
            self.kept.append((node, name))
        return UNKNOWN

    def _unknown(self, node: ast.Call, arguments: list[Value]) -> Value:
        """A module, or a function that is not known: it wants its tensors together."""
        together, name, of_self = union(arguments), last_name(node), bool(self_attribute(node.func))
        if (of_self or isinstance(node.func, ast.Name)) and name in self.returns:
            return self.returns[name]
        model = self.moves and self.in_driver and matches(habits.MODEL, name)
        moved = isinstance(node.func, ast.Name) and self.value(node.func).device
        if moved or model or self.in_step:
            self.met |= together.made
        self.met |= made_among_others(arguments)
        of_step = self.in_step and of_self and not together.plain
        return Value(device=together.device or moved or model or of_step, arrays=together.arrays)


def _is_number(node: ast.expr) -> bool:
    """Whether torch.tensor() of this is a 0-d tensor: a number by its form, or by its name."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp():
            return _is_number(node.operand)
        case ast.BinOp():
            return _is_number(node.left) and _is_number(node.right)
        case ast.Call():
            return last_name(node) in ("float", "int", "len") or all(_is_number(part) for part in node.args)
    return len(last_name(node)) == 1 or matches(habits.NUMBER, last_name(node))
