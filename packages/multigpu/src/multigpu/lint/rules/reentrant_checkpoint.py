"""FL024: reentrant checkpointing in a model that DDP wraps, where DDP is told of a parameter twice, or never."""

import ast
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import keyword, last_name
from ..readings import Reading
from ..replicas import wrapped_classes, wrappers
from ..scopes import Program, Scope

RULE = Rule(
    "FL024",
    "reentrant-checkpoint",
    "it runs a backward inside of DDP's, which then counts a parameter twice or waits for its gradient for ever",
    "checkpoint(..., use_reentrant=False)",
    "marked-ready-twice",
)
# Functions that checkpoint, and the place of the first argument that goes through the layers.
FIRST_GIVEN = {"torch.utils.checkpoint.checkpoint": 1, "torch.utils.checkpoint.checkpoint_sequential": 2}


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    made = wrappers(program, True)
    if not made or any(keyword(call, "static_graph") is not None for call in made):
        return
    unused = any(_is_true(keyword(call, "find_unused_parameters")) for call in made)
    classes, outermost = wrapped_classes(program, True), _built_for(made)
    for scope in program.scopes:
        if scope.cls is None or not scope.reached or scope.cls not in classes:
            continue
        for node in scope.nodes:
            if isinstance(node, ast.Call) and _is_reentrant(node, program):
                if unused:
                    yield node, "a reentrant checkpoint, and DDP(find_unused_parameters=True)"
                elif _repeats(node, program):
                    yield node, f"a reentrant checkpoint of {ast.unparse(node.args[0])} in every pass of a loop"
                elif scope.name == "forward" and scope.cls.name in outermost and _of_the_batch(node, scope, program):
                    yield (
                        node,
                        "a reentrant checkpoint of the batch itself, which needs no gradient, so its layers get none",
                    )


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _is_reentrant(node: ast.Call, program: Program) -> bool:
    """Whether a call checkpoints as torch does by default."""
    first = FIRST_GIVEN.get(program.names.called(node))
    if first is None or len(node.args) <= first:
        return False
    given = keyword(node, "use_reentrant")
    return _is_true(given) if given is not None else all(each.arg for each in node.keywords)


def _built_for(made: list[ast.Call]) -> set[str]:
    """The names of what is built in the call of DDP itself: `DDP(Net().cuda())`."""
    return {last_name(part) for call in made for given in call.args[:1] for part in ast.walk(given)}


def _repeats(node: ast.Call, program: Program) -> bool:
    """Whether the same module is checkpointed in every pass of a loop."""
    names = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)} - {"self"}
    if names or not isinstance(node.args[0], ast.Attribute):
        return False
    return any(isinstance(above, ast.For | ast.While) for above in program.around(node))


def _of_the_batch(node: ast.Call, scope: Scope, program: Program) -> bool:
    """Whether a checkpoint gets arguments of forward alone, as they came."""
    arguments = {each.arg for each in scope.parameters}
    given = {
        part.id
        for other in scope.nodes
        if isinstance(other, ast.Assign | ast.AugAssign) and other.lineno < node.lineno
        for target in (other.targets if isinstance(other, ast.Assign) else [other.target])
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }
    return all(
        isinstance(each, ast.Name) and each.id in arguments - given
        for each in node.args[FIRST_GIVEN[program.names.called(node)] :]
    )
