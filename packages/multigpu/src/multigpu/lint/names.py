"""The full names of what a file uses: its imports show which functions `th.zeros`, `F.relu` and `zeros` are."""

import ast
from collections.abc import Iterator

# The import of `Variable` may be missing if only a part of the file is at hand.
USUAL = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "np": "numpy",
    "numpy": "numpy",
    "Variable": "torch.autograd.Variable",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


class Names:
    """The imports of a file, and the names of its models that bring their inputs to the GPUs by themselves."""

    def __init__(self, tree: ast.AST) -> None:
        self.imported = dict(USUAL)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.imported[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{module}.{alias.name}"

        self.wrapped = {
            last_name(target)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target, value in _pairs(node.targets[0], node.value)
            if self.called(value).endswith("DataParallel")
        }

    def full(self, node: ast.AST) -> str:
        """The dotted name of an expression (`torch.nn.functional.relu`), or "" if it has none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imported.get(node.id, node.id), *reversed(parts)])

    def called(self, node: ast.AST) -> str:
        """The full name of the function that a call calls, or ""."""
        return self.full(node.func) if isinstance(node, ast.Call) else ""


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The target and the value of each part of an assignment."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def last_name(node: ast.AST) -> str:
    """`b` of `a.b`, `a` of `a`, of the function for a call, else ""."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def method_of(node: ast.AST) -> str:
    """The method that a call calls, or ""."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def owner_of(node: ast.AST) -> str:
    """`b` of the method's call `a.b.c()`, or ""."""
    return last_name(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def self_attribute(node: ast.AST) -> str:
    """`a` of `self.a`, else ""."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""  # type: ignore[attr-defined]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument, or None."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def plain_names(node: ast.AST) -> set[str]:
    """Every name in an expression: `a` and `i` of `a.b[i]`."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or file without those of the functions and classes defined in it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            for decorator in child.decorator_list:
                yield from (decorator, *ast.walk(decorator))
            continue
        yield child
        yield from own_nodes(child)
