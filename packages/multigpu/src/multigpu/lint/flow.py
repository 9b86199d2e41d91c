"""Follow the tensors of one function from line to line: which are on the device, which were made on the CPU.

The function is read in the order of its lines, loops twice, and nothing is run. A name that cannot be followed is taken
as harmless, except in a step of a model: there the attributes of `self` and the arguments are on the device.
"""

import ast
from collections import ChainMap
from itertools import chain

from . import habits, values
from .habits import matches
from .names import Names, keyword, last_name, method_of, self_attribute
from .scopes import DRIVER, STEP, Scope
from .values import (
    ON_DEVICE,
    PLAIN,
    UNKNOWN,
    Gathered,
    Value,
    container,
    made_among_others,
    merge_branches,
    one_of,
    union,
)
from .wrappers import RETURN_THE_MODEL, gathers, is_wrapper

Environment = dict[str, Value]
CPU = ("'cpu'", "torch.device('cpu')")


class Flow:
    """The reading of one scope: its statements, the expressions in them, and the calls in those.

    What was found on the way is kept in the attributes.
    """

    def __init__(
        self, scope: Scope, names: Names, environment: Environment, attributes: Environment, returns: Environment
    ) -> None:
        self.names, self.attributes, self.returns = names, attributes, returns
        self.environment = ChainMap(environment)
        self.in_step, self.in_driver = scope.kind == STEP, scope.kind == DRIVER
        self.met: set[ast.AST] = set()  # made on the CPU, and used among tensors of the device
        self.left: set[ast.AST] = set()  # the calls that made arrays of tensors
        self.came_back: set[ast.AST] = set()  # both ends of a way from tensor to array to tensor
        self.kept: list[tuple[ast.AST, str]] = []  # the lines that keep a tensor on self, and the attribute
        self.returned: list[Value] = []
        self.asked: dict[ast.Attribute, frozenset[ast.Call]] = {}  # attributes of wrapped models, and their wrappers
        self.added: set[str] = set()  # attributes that wrapped models were given
        self.unreduced: dict[ast.Call, frozenset[Gathered]] = {}  # calls that need one number and get one of each GPU
        self.passed: dict[tuple[str, int | str], list[Value]] = {}  # the arguments of functions: by name and argument
        self.moves = False  # whether anything was sent to a device so far
        self.in_loop = False  # whether the line is in a loop
        self.default_device = 0  # how many `with torch.device(...)` are around the line

    # ---------------------------------------------------------------- statements

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
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node)
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
            sum_of_both = self.combine([target, given])._replace(gathered=target.gathered | given.gathered)
            self.bind(node.target, sum_of_both, node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        defaults = 0
        for item in node.items:
            entered = self.value(item.context_expr)
            if item.optional_vars and entered.gathered:
                self.bind(item.optional_vars, entered, node)
            # torch.cuda.device(k) chooses among GPUs only: torch.zeros(3) inside it is on the CPU all the same.
            name = self.names.full(item.context_expr) or self.names.called(item.context_expr)
            defaults |= name.endswith("device") and "cuda" not in name
        self.default_device += defaults
        self.read(node.body)
        self.default_device -= defaults

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """Read a loop twice, because a pass finds the values that the pass before it left.

        An inner loop is read once in each of these passes: to read it twice would double the time with each depth.
        """
        outermost, self.in_loop = not self.in_loop, True
        for _ in range(2 if outermost else 1):
            if isinstance(node, ast.While):
                self.value(node.test)
            else:
                self.bind_loop(node.target, node.iter)
            self.read(node.body)
        self.in_loop = not outermost
        self.read(node.orelse)

    def _branches(self, bodies: list[list[ast.stmt]]) -> None:
        """Read each body by itself. Its assignments hide the values from before, which are not copied."""
        before, after = self.environment, []
        for body in bodies:
            self.environment = ChainMap({}, *before.maps)
            self.read(body)
            after.append(self.environment)
        self.environment = before
        merged = {
            name: merge_branches(before.get(name), [there[name] for there in after if name in there])
            for name in set(chain.from_iterable(there.maps[0] for there in after))
        }
        before.update(merged)

    def bind(self, target: ast.expr, value: Value, statement: ast.AST) -> None:
        """Give a value to a name, or to another target of an assignment."""
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
        if isinstance(target, ast.Attribute):
            self._store_model(target, value)
        if name and value.is_tensor:
            into_buffer = isinstance(target, ast.Subscript) and self.attributes.get(name, UNKNOWN).device
            if not into_buffer and not is_moved_self(statement, name):
                self.kept.append((statement, name))
            self.met |= value.made if self.in_step else set()
        elif isinstance(held, ast.Name) and isinstance(target, ast.Subscript):
            # x[i] = y copies from any device; a dict or a list holds what is put into it
            known = self.environment.get(held.id, UNKNOWN)
            if known.gathered and not value.gathered:  # `losses[name] = losses[name].mean()`
                self.environment[held.id] = known._replace(gathered=frozenset(), settled=True)
            if not known.is_tensor:
                self.environment[held.id] = container([known, value])._replace(plain=False)

    def _store_model(self, target: ast.Attribute, value: Value) -> None:
        """Remember a wrapped model that is assigned to `self`, and the attributes that a wrapped model is given."""
        known = f"self.{self_attribute(target)}"
        if self_attribute(target) and (value.wrapped or known in self.environment):
            self.environment[known] = value
        elif _is_name(target.value) and self.value(target.value).wrapped:
            self.added.add(target.attr)

    def bind_loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """Give the variable of a loop the value of an element of what it runs over."""
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
                held = self.value(iterable)
                named = last_name(iterable) in ("values", "items")  # a dict's: its entries are gathered one by one
                self.bind(target, held.part(held.gathered if named else frozenset()), target)

    # ---------------------------------------------------------------- expressions

    def value(self, node: ast.AST) -> Value:
        """The value that an expression may have."""
        match node:
            case ast.Constant() | ast.Slice():
                return PLAIN
            case ast.JoinedStr() | ast.FormattedValue():
                for part in ast.iter_child_nodes(node):
                    self.value(part)
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
                operands = [self.value(node.left), self.value(node.right)]
                gathered = operands[0].gathered | operands[1].gathered
                return self.combine(operands)._replace(gathered=gathered)
            case ast.UnaryOp():
                return PLAIN if isinstance(node.op, ast.Not) else self.value(node.operand)
            case ast.Compare():
                operands = [self.value(part) for part in (node.left, *node.comparators)]
                is_test = any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
                return PLAIN if is_test else self.combine(operands)
            case ast.IfExp():
                self.value(node.test)
                chosen = one_of([self.value(node.body), self.value(node.orelse)])
                return chosen._replace(made=frozenset()) if chosen.device else chosen
            case ast.NamedExpr():
                self.bind(node.target, found := self.value(node.value), node)
                return found
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for part in node.generators:
                    self.bind_loop(part.target, part.iter)
                each = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
                return each.part(each.gathered)
            case ast.Dict():
                return container([self.value(part) for part in node.values])
            case ast.Call():
                return self.call(node)
        return container([self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def _attribute(self, node: ast.Attribute) -> Value:
        if _is_name(node.value) and (held := self.value(node.value)).wrapped:
            self.asked[node] = held.wrapped
            return held._replace(wrapped=frozenset(), settled=node.attr == "module")
        if node.attr in values.PLAIN_ATTRIBUTES:
            return PLAIN
        if name := self_attribute(node):
            return self.environment.get(f"self.{name}") or self.attributes.get(name, UNKNOWN)
        return self.value(node.value)

    def _subscript(self, node: ast.Subscript) -> Value:
        held, index = self.value(node.value), self.value(node.slice)
        if index.device:  # the other way about is allowed: an index on the CPU into a tensor on a GPU
            self.met |= held.made
        return held.part(self._gathered_part(node, held))

    def _gathered_part(self, node: ast.Subscript, held: Value) -> frozenset[Gathered]:
        """The outputs in an entry of a dict; those in `output[0]` are marked, since it may be an entry of a vector."""
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(index, str):
            return held.gathered
        if isinstance(index, int):
            return frozenset(each._replace(entry=True) for each in held.gathered)
        return frozenset()

    # ---------------------------------------------------------------- calls

    def combine(self, operands: list[Value]) -> Value:
        """The value of an operation. Tensors of the CPU among those of the device are remembered for FL002."""
        together = union(operands)
        if not together.device:  # with an unknown tensor, the result of a 0-d one may have dimensions
            return together._replace(scalar=frozenset()) if UNKNOWN in operands else together
        self.met |= made_among_others(operands)
        return Value(device=True, arrays=together.arrays, guessed=together.guessed)

    def call(self, node: ast.Call) -> Value:
        """The value that a call returns."""
        name, method = self.names.called(node), method_of(node)
        arguments = [self.value(given) for given in (*node.args, *(given.value for given in node.keywords))]
        self._pass_on(node, arguments)
        if self._scatters(node, name):
            return self._from_wrapper(node, name)
        if name in ("float", "sum") and arguments and arguments[0].gathered:
            return self._number(node, name, arguments[0])
        if name == "getattr" and len(node.args) > 1 and ast.unparse(node.args[1]) == "'module'":
            return arguments[0]._replace(wrapped=frozenset(), settled=True)
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

    def _pass_on(self, node: ast.Call, arguments: list[Value]) -> None:
        positions = [*range(len(node.args)), *(given.arg for given in node.keywords)]
        for position, value in zip(positions, arguments, strict=True):
            if position is not None:
                self.passed.setdefault((last_name(node), position), []).append(value)

    def _scatters(self, node: ast.Call, name: str) -> bool:
        """Whether it takes inputs from anywhere, as nn.DataParallel does."""
        built_here = self.names.called(node.func).endswith("DataParallel")  # DataParallel(net)(x)
        by_name = name.endswith(("DataParallel", "data_parallel")) or last_name(node) in self.names.wrapped
        return built_here or by_name or bool(self._callee(node).wrapped)

    def _callee(self, node: ast.Call) -> Value:
        return self.value(node.func) if _is_name(node.func) else UNKNOWN

    def _from_wrapper(self, node: ast.Call, name: str) -> Value:
        """A model in a wrapper, or the output of such a model."""
        if name.endswith("DataParallel"):
            return ON_DEVICE._replace(wrapped=frozenset([node] if is_wrapper(name) else []))
        models = self._callee(node).wrapped
        if isinstance(node.func, ast.Call) and is_wrapper(self.names.called(node.func)):
            models = frozenset([node.func])
        if name.endswith("parallel.data_parallel"):
            models = frozenset([node])
        outputs = (Gathered(node, model) for model in models if gathers(model, self.names))
        return ON_DEVICE._replace(gathered=frozenset(outputs))

    def _number(self, node: ast.Call, name: str, given: Value) -> Value:
        """A number of a gathered output, or, for the sum of a dict's entries, a vector as they are."""
        if name != "sum":
            self._want_number(node, given)
            return PLAIN
        of_entries = isinstance(node.args[0], ast.GeneratorExp | ast.ListComp) or last_name(node.args[0]) == "values"
        return given if of_entries else given._replace(gathered=frozenset(), settled=True)

    def _want_number(self, node: ast.Call, given: Value) -> None:
        """Remember a call that needs one number. `output[0]` may be one row, so only its backward() surely fails."""
        is_backward = method_of(node) == "backward"
        wanted = frozenset(each for each in given.gathered if is_backward or not each.entry)
        if wanted and not any(keyword.arg == "gradient" for keyword in node.keywords):
            self.unreduced[node] = wanted

    def _torch(self, node: ast.Call, name: str, arguments: list[Value]) -> Value:
        last, together = name.rsplit(".", 1)[-1], union(arguments)
        if last in values.FACTORIES and name.count(".") == 1:
            return self._factory(node, last, together)
        if name.startswith("torch.cuda.") and last.endswith("Tensor"):
            return ON_DEVICE
        if last in values.JOINING:  # the result is no longer 0-d
            arguments = [value._replace(made=value.made | value.scalar) for value in arguments]
            together = union(arguments)
            if together.device:
                self.met |= together.made  # within one list, too
        return self.combine(arguments)._replace(settled=bool(together.gathered) and last in values.REDUCING)

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
        if held.wrapped:
            self.asked[node.func] = held.wrapped  # type: ignore[index]
            return held if method in RETURN_THE_MODEL else UNKNOWN
        found = self._method_of(node, method, held, arguments)
        if held.gathered:
            if method == "item" or (method == "backward" and not node.args):
                self._want_number(node, held)
            kept = held.gathered if method in values.ELEMENTWISE else frozenset()
            return found._replace(gathered=kept, settled=method in values.REDUCING)
        if method in ("scale", "scale_loss") and arguments:  # of mixed precision: a loss in, a loss out
            return found._replace(gathered=arguments[0].gathered)
        return found

    def _method_of(self, node: ast.Call, method: str, held: Value, arguments: list[Value]) -> Value:
        owner = node.func.value  # type: ignore[attr-defined]
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

    def _put_into(self, node: ast.Call, owner: ast.expr, held: Value, given: Value) -> Value:
        if isinstance(owner, ast.Name):
            self.environment[owner.id] = container([held, given])._replace(plain=False)
        elif (name := self_attribute(owner)) and given.is_tensor:
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


def is_moved_self(statement: ast.AST, name: str) -> bool:
    """Whether a line moves or fills a tensor of self: `self.anchors = self.anchors.to(device)`, `out=self.anchors`."""
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


def _is_name(node: ast.AST) -> bool:
    """Whether it is a name, `model` or `self.model`, and not a computation."""
    return isinstance(node, ast.Name) or bool(self_attribute(node))
