"""All values that a program computes: those that it keeps in variables, and those of lines whose result it drops."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor


class _Keeper(ast.NodeTransformer):
    """Has each line that is only an expression, or is assigned to `_`, put its value into a list."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return self._kept(node, node.value)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        return self._kept(node, node.value) if ast.unparse(node.targets[0]) == "_" else node

    def _kept(self, node: ast.stmt, value: ast.expr) -> ast.AST:
        call = ast.Call(ast.Name("__keep", ast.Load()), [value], [])
        return ast.copy_location(ast.Expr(call), node)


def values_of(program: Callable[..., None], *args: object) -> list[Any]:
    """Run a program once, let the host wait for everything, and read what it computed.

    Args:
        program: a function of a module.
        args: its arguments.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(program)))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    # Its variables at the end, for programs whose last line changes a tensor in place.
    function.body.append(ast.parse("__keep(list(locals().values()))").body[0])
    kept: list[Any] = []
    names = {**program.__globals__, "__keep": kept.append}
    code = compile(ast.fix_missing_locations(_Keeper().visit(tree)), inspect.getfile(program), "exec")
    exec(code, names)
    torch.manual_seed(0)
    names[program.__name__](*args)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    return [found for value in kept for found in _read(value)]


def _read(value: Any) -> list[Any]:
    """The numbers of a value; of a layer, those of its weights and gradients."""
    if isinstance(value, torch.nn.Module):
        parameters = list(value.parameters())
        return [number for one in [*parameters, *(p.grad for p in parameters)] for number in _read(one)]
    if isinstance(value, (list, tuple)):
        return [number for one in value for number in _read(one)]
    if isinstance(value, DTensor):
        return _read(value.full_tensor())
    if isinstance(value, torch.Tensor):
        if value.untyped_storage().nbytes() == 0:  # its memory was given back
            return []
        return [value.detach().cpu().tolist()]
    return [float(value)] if isinstance(value, (int, float)) or hasattr(value, "__float__") else []
