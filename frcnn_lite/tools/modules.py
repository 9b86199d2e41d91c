"""A Python file taken apart at its top level: which statement binds which names, and what each of them needs."""

import ast
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

OPERATOR = re.compile(r"frcnn_lite::(\w+)")  # what torch.library calls an operator when it is declared


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level of a file, with its source (comments above it included)."""

    node: ast.stmt
    source: str

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names it defines; an anonymous `def _` that registers something defines none."""
        targets: list[ast.expr] = []
        match self.node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                return frozenset({name} - {"_"})
            case ast.Assign():
                targets = self.node.targets
            case ast.AnnAssign():
                targets = [self.node.target]
        return frozenset(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))

    @cached_property
    def needs(self) -> frozenset[str]:
        """Every name it mentions; arguments too, since pytest finds fixtures by them."""
        nodes = list(ast.walk(self.node))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        return frozenset(names | {node.arg for node in nodes if isinstance(node, ast.arg)})

    @cached_property
    def calls_operators(self) -> frozenset[str]:
        """Custom operators it calls, as `torch.ops.frcnn_lite.NAME`."""
        return frozenset(re.findall(r"\btorch\.ops\.frcnn_lite\.(\w+)", self.source))

    @cached_property
    def declares_operators(self) -> frozenset[str]:
        """Custom operators it declares or gives an implementation or a gradient."""
        texts = (node.value for node in ast.walk(self.node) if isinstance(node, ast.Constant))
        found = (OPERATOR.match(text) for text in texts if isinstance(text, str))
        return frozenset(match.group(1) for match in found if match)

    @property
    def is_docstring(self) -> bool:
        return isinstance(self.node, ast.Expr) and isinstance(self.node.value, ast.Constant)


@dataclass(frozen=True)
class Import:
    """One name that an import statement brings: `from module import name as bound`, or `import module` (name empty)."""

    module: str
    name: str
    bound: str


class Module:
    """A file: its docstring, its imports, and its other statements in order."""

    def __init__(self, path: Path, dotted: str) -> None:
        self.path, self.dotted = path, dotted
        self.text = path.read_text(encoding="utf-8")
        tree = ast.parse(self.text)
        self.docstring = ast.get_docstring(tree) or ""
        self.imports: dict[str, Import] = {}
        self.future = False
        self.statements: list[Statement] = []
        lines = self.text.splitlines()
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._note_import(node)
            else:
                self.statements.append(Statement(node, source_of(node, lines)))

    def binds(self, name: str) -> bool:
        """Whether a statement or an import of this file defines `name`."""
        return name in self.imports or any(name in statement.binds for statement in self.statements)

    def _note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                self.imports[bound] = Import(alias.name, "", bound)
        elif node.module == "__future__":
            self.future = True
        else:
            package = self.dotted.split(".") if self.path.name == "__init__.py" else self.dotted.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                bound = alias.asname or alias.name
                self.imports[bound] = Import(module, alias.name, bound)


@cache
def load(path: Path, dotted: str) -> Module:
    """A module taken apart, once."""
    return Module(path, dotted)


def source_of(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a statement, with its decorators and the comment that stands on top of it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : node.end_lineno])
