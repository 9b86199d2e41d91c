"""Loops that add up the gradients of several micro-batches before a step of the optimizer."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .names import last_name, method_of
from .scopes import Program, Scope

LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Accumulation(NamedTuple):
    """A loop that accumulates: its backward, the test that lets the optimizer step, and the number in this test."""

    backward: ast.Call
    test: ast.If
    every: ast.expr  # 4 of `(i + 1) % 4 == 0`


def accumulations(scope: Scope, program: Program) -> Iterator[Accumulation]:
    """The loops of a function in which every pass goes backward, and only some passes step and clear the gradients."""
    calls = [node for node in scope.nodes if isinstance(node, ast.Call)]
    for step in (call for call in calls if method_of(call) == "step" and not _schedules(call)):
        loop = _loop(step, program)
        test = next((each for each in program.around(step) if isinstance(each, (ast.If, *LOOPS))), None)
        every = _modulus(test.test) if isinstance(test, ast.If) and loop is not None else None
        if every is None or not isinstance(test, ast.If):
            continue
        inside = [call for call in calls if _loop(call, program) is loop]
        backwards = [call for call in inside if method_of(call) == "backward" and not _below(call, test, program)]
        cleared = [call for call in inside if method_of(call) == "zero_grad"]
        clears = cleared and all(_below(call, test, program) for call in cleared)
        if len(backwards) == 1 and clears and not _under_a_test(backwards[0], program):
            yield Accumulation(backwards[0], test, every)


def _schedules(step: ast.Call) -> bool:
    """Whether it is the step of something else than an optimizer or a scaler."""
    owner = last_name(step.func.value) if isinstance(step.func, ast.Attribute) else ""
    return "sched" in owner.lower() or not any(word in owner.lower() for word in ("opt", "scaler"))


def _loop(node: ast.AST, program: Program) -> ast.AST | None:
    """The innermost loop around a node."""
    return next((each for each in program.around(node) if isinstance(each, LOOPS)), None)


def _below(node: ast.AST, test: ast.If, program: Program) -> bool:
    return any(each is test for each in program.around(node))


def _under_a_test(node: ast.AST, program: Program) -> bool:
    """Whether a node is under a test inside its loop."""
    inside = next((each for each in program.around(node) if isinstance(each, (ast.If, ast.Try, *LOOPS))), None)
    return isinstance(inside, ast.If | ast.Try)


def _modulus(test: ast.expr) -> ast.expr | None:
    """The number of passes between two steps, by a test such as `(i + 1) % 4 == 0`."""
    found = [part for part in ast.walk(test) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)]
    return found[0].right if len(found) == 1 else None
