"""One file out of several: a definition, everything of this package it needs, and nothing else.

Works on the source alone, at the grain of top-level statements, so that comments and docstrings come along and nothing
has to be importable.
"""

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from frcnn_lite.tools.modules import Import, Module, Statement, load

PACKAGE = Path(__file__).resolve().parents[1]


class NotCopyable(ValueError):
    """The source does something that one file cannot express; says what and where."""


class Amalgam:
    """A growing set of statements, closed under "needs"; `outsiders` are files from outside the package."""

    def __init__(self, *outsiders: Module) -> None:
        self.kept: dict[str, list[Statement]] = {}  # dotted name of a module -> its statements, in any order
        self.external: set[Import] = set()
        self._cache = {module.dotted: module for module in outsiders}

    def module(self, dotted: str) -> Module | None:
        """A module of this package by its dotted name, None if there is no such file."""
        if dotted not in self._cache:
            path = PACKAGE.joinpath(*dotted.split(".")[1:])
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if not file.exists():
                return None
            self._cache[dotted] = load(file, dotted)
        return self._cache[dotted]

    def add(self, module: Module, name: str) -> None:
        """Add what `name` means in `module`, and all it needs; a name it does not bind is a builtin or a local."""
        for statement in module.statements:
            if name in statement.binds:
                self.add_statement(module, statement)
        if name in module.imports:
            self.add_import(module, module.imports[name])

    def add_import(self, module: Module, wanted: Import) -> None:
        """Follow an import inside the package to the definition; note one from outside."""
        if wanted.module.split(".")[0] != PACKAGE.name:
            self.external.add(wanted)
            return
        source = self.module(wanted.module)
        if source is None or wanted.bound != wanted.name or not source.binds(wanted.name):
            what = f"{wanted.module} {wanted.name}".strip()
            raise NotCopyable(
                f"{module.dotted} imports {what} as {wanted.bound}, which is no name that one file can define"
            )
        self.add(source, wanted.name)

    def add_statement(self, module: Module, statement: Statement) -> None:
        """Add one statement and what it needs, each once."""
        kept = self.kept.setdefault(module.dotted, [])
        if statement in kept:
            return
        kept.append(statement)
        for node in ast.walk(statement.node):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE.name:
                raise NotCopyable(f"{module.path.name} line {node.lineno}: an import of this package inside a function")
        for name in sorted(statement.needs):
            self.add(module, name)
        for operator in sorted(statement.calls_operators):
            for other in module.statements:
                if operator in other.declares_operators:
                    self.add_statement(module, other)

    def modules(self) -> list[Module]:
        """The files that something was taken from, each after those that it imports from."""
        ordered: list[Module] = []

        def visit(dotted: str) -> None:
            module = self._cache[dotted]
            if module in ordered:
                return
            for wanted in module.imports.values():
                if wanted.module in self._cache:
                    visit(wanted.module)
            ordered.append(module)

        for dotted in self.kept:
            visit(dotted)
        return [module for module in ordered if module.dotted in self.kept]

    def names(self) -> set[tuple[str, str]]:
        """(module, name) of everything that has been added."""
        return {(dotted, name) for dotted, kept in self.kept.items() for statement in kept for name in statement.binds}

    def body(self) -> str:
        """Imports, then the statements of each module in the order they were written in."""
        modules = self.modules()
        parts = [import_lines(self.external, any(module.future for module in modules))]
        seen: dict[str, str] = {}
        for module in modules:
            if len(modules) > 1:
                parts.append(f"# ---- from {PACKAGE.name}/{module.path.relative_to(PACKAGE).as_posix()}")
            for statement in filter(self.kept[module.dotted].__contains__, module.statements):
                for name in statement.binds:
                    if seen.setdefault(name, module.dotted) != module.dotted:
                        raise NotCopyable(f"{name} is defined both in {seen[name]} and in {module.dotted}")
                parts.append(statement.source)
        return "\n\n\n".join(parts) + "\n"


def import_lines(imports: Iterable[Import], future: bool) -> str:
    """Imports merged by module and sorted: the standard library, then the rest."""
    plain: set[str] = set()
    by_module: dict[str, set[str]] = {}
    for item in imports:
        if item.name:
            name = item.name if item.bound == item.name else f"{item.name} as {item.bound}"
            by_module.setdefault(item.module, set()).add(name)
        else:
            plain.add(item.module if item.bound == item.module.split(".")[0] else f"{item.module} as {item.bound}")
    lines = [(module.split()[0], 0, f"import {module}") for module in plain]
    lines += [(module, 1, f"from {module} import {', '.join(sorted(names))}") for module, names in by_module.items()]
    groups: dict[bool, list[str]] = {True: [], False: []}
    for module, _, line in sorted(lines, key=lambda row: (row[1], row[0])):
        groups[module.split(".")[0] in sys.stdlib_module_names].append(line)
    head = ["from __future__ import annotations"] if future else []
    return "\n\n".join("\n".join(group) for group in (head, groups[True], groups[False]) if group)


def renamed(text: str, file: str) -> str:
    """Text that stands alone: operators in a namespace of their own, optional kernels looked for beside the file."""
    text = re.sub(r"\bfrcnn_lite::", f"{file}_copy::", text)
    text = re.sub(r"\btorch\.ops\.frcnn_lite\b", f"torch.ops.{file}_copy", text)
    return re.sub(r"\bfrcnn_lite\.(?:\w+\.)+(?=\{kind\}_)", "", text)
