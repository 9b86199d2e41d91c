"""Loops that add up the gradients of several micro-batches before a step of the optimizer."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .names import last_name, method_of, owner_of, plain_names
from .scopes import Program, Scope

LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Accumulation(NamedTuple):
    """A loop that accumulates: its backward, and how many passes there are to a step of the optimizer."""

    backward: ast.Call
    number: str  # 4 of `if (i + 1) % 4 == 0` and of `for _ in range(4)`; len(parts) of `for part in parts`
    by_test: bool  # whether a test lets some passes step; else the step comes after the loop


def accumulations(scope: Scope, program: Program) -> Iterator[Accumulation]:
    """The loops of a function in which every pass goes backward, and that step and clear the gradients seldom."""
    calls = [node for node in scope.nodes if isinstance(node, ast.Call)]
    yield from _stepping_seldom(calls, program)
    yield from _stepping_afterwards(calls, program)


def _stepping_seldom(calls: list[ast.Call], program: Program) -> Iterator[Accumulation]:
    """Loops in which a test lets some passes step."""
    for step in (call for call in calls if method_of(call) == "step" and not _schedules(call)):
        loop = _loop(step, program)
        test = next((each for each in program.around(step) if isinstance(each, (ast.If, *LOOPS))), None)
        every = _modulus(test.test) if isinstance(test, ast.If) and loop is not None else None
        if every is None or not isinstance(test, ast.If):
            continue
        inside = [call for call in calls if _loop(call, program) is loop]
        backwards = [call for call in inside if method_of(call) == "backward"]
        cleared = [call for call in inside if method_of(call) == "zero_grad"]
        clears = cleared and all(_below(call, test, program) for call in cleared)
        if clears and _once_in_each_pass(backwards, test, program):
            yield Accumulation(backwards[0], ast.unparse(every), True)


def _stepping_afterwards(calls: list[ast.Call], program: Program) -> Iterator[Accumulation]:
    """Loops that step in no pass, in a block that steps and clears the gradients once."""
    steps = [call for call in calls if method_of(call) == "step" and not _schedules(call)]
    for backward in (call for call in calls if method_of(call) == "backward"):
        loop = _loop(backward, program)
        if not isinstance(loop, ast.For) or plain_names(backward) & plain_names(loop.target):
            continue
        outside = [call for call in calls if not any(each is loop for each in program.around(call))]
        block = next(program.around(loop))
        beside = [call for call in outside if any(each is block for each in program.around(call))]
        steps_later = any(call in steps and call.lineno > loop.lineno for call in beside)
        cleared = [call for call in calls if method_of(call) == "zero_grad"]
        alone = sum(method_of(call) == "backward" and _loop(call, program) is loop for call in calls) == 1
        alone = alone and not _under_a_test(backward, program)
        if alone and steps_later and cleared and all(call in outside for call in (*cleared, *steps)):
            yield Accumulation(backward, _passes(loop.iter), False)


def _passes(over: ast.expr) -> str:
    """How many passes a loop has, as a file would write it."""
    if isinstance(over, ast.Call) and last_name(over) == "range" and len(over.args) == 1:
        return ast.unparse(over.args[0])
    while isinstance(over, ast.Call) and last_name(over) in ("enumerate", "reversed", "tqdm") and over.args:
        over = over.args[0]
    return f"len({ast.unparse(over)})"


def _once_in_each_pass(backwards: list[ast.Call], test: ast.If, program: Program) -> bool:
    """Whether every pass goes backward once: outside of the test that lets it step, or in both of its branches."""
    below = [call for call in backwards if _below(call, test, program)]
    if not below:
        return len(backwards) == 1 and not _under_a_test(backwards[0], program)
    in_body = [call for call in below if any(each in test.body for each in (call, *program.around(call)))]
    return len(backwards) == len(below) == 2 and len(in_body) == 1


def _schedules(step: ast.Call) -> bool:
    """Whether it is the step of something else than an optimizer or a scaler."""
    owner = owner_of(step).lower()
    return "sched" in owner or not any(word in owner for word in ("opt", "scaler"))


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
