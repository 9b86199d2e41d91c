"""FL032: a step that a rank leaves out because of its own loss or memory, while the others wait for it in backward."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name, method_of, plain_names
from ..over_ranks import names_in
from ..readings import Reading
from ..scopes import Scope

RULE = Rule(
    "FL032",
    "skipped-by-one-rank",
    "a rank that skips its backward by itself leaves the others waiting there for its gradients",
    "one answer for all ranks: dist.all_reduce(fine, dist.ReduceOp.MIN) before the test; or let the error end the run",
    "collective-time-out",
)
SEVERAL = re.compile(r"distributed|DDP|world_size")
FINITE = ("isfinite", "isnan", "isinf")
TOGETHER = re.compile(r"reduce|gather|broadcast|sync|agree|any_rank|all_ranks", re.IGNORECASE)


def check(reading: Reading) -> Iterator[Found]:
    """Yield (node, what was found)."""
    program = reading.program
    if program.any_call("DataParallel") or not any(SEVERAL.fullmatch(name) for name in names_in(program)):
        return
    for scope in program.scopes:
        for node in scope.nodes:
            if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue):
                loop = next((above for above in program.around(node) if isinstance(above, ast.For | ast.While)), None)
                if loop is not None and _asks_its_loss(node, scope) and _goes_back_later(loop, node):
                    yield node.body[-1], f"continue if {ast.unparse(node.test)}"
            elif isinstance(node, ast.Try) and any(
                isinstance(each, ast.For | ast.While) for each in program.around(node)
            ):
                yield from _goes_on_without_memory(node)


def _goes_on_without_memory(node: ast.Try) -> Iterator[Found]:
    """Handlers that let a rank go on with the next batch where its memory was full before or in backward."""
    if not any(method_of(part) == "backward" for each in node.body for part in ast.walk(each)):
        return
    for handler in node.handlers:
        text = ast.unparse(handler)
        goes_on = not isinstance(handler.body[-1], ast.Raise | ast.Return | ast.Break)
        if goes_on and re.search(r"OutOfMemoryError|out of memory", text) and not TOGETHER.search(text):
            yield handler, f"{text.splitlines()[0].rstrip(':')}: this rank goes on with the next batch"


def _asks_its_loss(node: ast.If, scope: Scope) -> bool:
    """Whether a test asks if a number is finite, and nothing brought the ranks' numbers together before."""
    if not any(isinstance(part, ast.Call) and last_name(part) in FINITE for part in ast.walk(node.test)):
        return False
    names = plain_names(node.test)
    before = [other for other in scope.nodes if isinstance(other, ast.Assign | ast.Expr) and other.lineno < node.lineno]
    of_them = [each for each in before if names & plain_names(each)]
    return not any(TOGETHER.search(ast.unparse(each)) for each in (node.test, *of_them))


def _goes_back_later(loop: ast.AST, node: ast.If) -> bool:
    """Whether the loop has a backward below the test, and the skipping branch has none of its own."""
    if any(method_of(part) == "backward" for part in ast.walk(node)):
        return False
    calls = [part for part in ast.walk(loop) if isinstance(part, ast.Call)]
    return any(method_of(part) == "backward" and part.lineno > node.lineno for part in calls)
