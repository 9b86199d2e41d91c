"""Which names a cell takes from the cells before it, and which it binds."""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Names:
    """reads: names that have to be there before the cell runs; binds: names that it leaves behind."""

    reads: frozenset[str]
    binds: frozenset[str]


def names_of(source: str) -> Names:
    """The names of a cell. One that is no plain Python has none.

    A function is read where it stands, although it runs later: what it needs from other cells is the same.
    """
    try:
        tree, table = ast.parse(source), symtable.symtable(source, "<cell>", "exec")
    except SyntaxError:
        return Names(frozenset(), frozenset())
    binds = frozenset(s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported())
    outer = _Reading()
    outer.visit(tree)
    return Names(frozenset(outer.reads) | (frozenset(_globals_in(table)) - binds), binds - outer.gone)


def _globals_in(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the module that functions, classes and comprehensions read."""
    for child in table.get_children():
        yield from (s.get_name() for s in child.get_symbols() if s.is_global() and s.is_referenced())
        yield from _globals_in(child)


def _outside(node: ast.AST) -> list[ast.expr]:
    """What is computed where it stands: a function's decorators and defaults, a comprehension's first iterable."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        return [*getattr(node, "decorator_list", []), *defaults]
    return [node.generators[0].iter]


class _Reading(ast.NodeVisitor):
    """Goes through a cell in the order in which it runs: `reads` are the names that it reads and has not bound."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.bound: set[str] = set()
        self.gone: set[str] = set()  # the names of caught errors, which end with their block

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, NESTED):  # what stands inside is for `_globals_in`
            self.bound |= {node.name} if hasattr(node, "name") else set()
            for part in _outside(node):
                self.visit(part)
            return
        super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.reads.add(node.id)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases):
            self.visit(part)
        self.bound.add(node.name)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).split(".")[0])

    def visit_Assign(self, node: ast.Assign) -> None:
        for part in (node.value, *node.targets):
            self.visit(part)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.reads.add(node.target.id)
        for part in (node.value, node.target):
            self.visit(part)

    def visit_For(self, node: ast.For) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.bound |= {node.name} if node.name else set()
        self.gone |= {node.name} if node.name else set()
        self.generic_visit(node)
