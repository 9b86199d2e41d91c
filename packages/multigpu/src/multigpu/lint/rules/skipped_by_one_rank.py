"""FL032: a step that a rank leaves out because of its own loss, while the others wait for it in backward."""

import ast
import re
from collections.abc import Iterator

from ..finding import Found, Rule
from ..names import last_name, method_of
from ..over_ranks import names_in
from ..readings import Reading
from ..scopes import Scope

RULE = Rule(
    "FL032",
    "skipped-by-one-rank",
    "a rank whose own loss is not finite skips its backward, and the others wait there for its gradients",
    "one answer for all ranks: dist.all_reduce(finite, dist.ReduceOp.MIN) before the test",
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


def _asks_its_loss(node: ast.If, scope: Scope) -> bool:
    """Whether a test asks if a number is finite, and nothing brought the ranks' numbers together before."""
    if not any(isinstance(part, ast.Call) and last_name(part) in FINITE for part in ast.walk(node.test)):
        return False
    names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    before = [other for other in scope.nodes if isinstance(other, ast.Assign | ast.Expr) and other.lineno < node.lineno]
    of_them = [each for each in before if names & {part.id for part in ast.walk(each) if isinstance(part, ast.Name)}]
    return not any(TOGETHER.search(ast.unparse(each)) for each in (node.test, *of_them))


def _goes_back_later(loop: ast.AST, node: ast.If) -> bool:
    """Whether the loop has a backward below the test, and the skipping branch has none of its own."""
    if any(method_of(part) == "backward" for part in ast.walk(node)):
        return False
    calls = [part for part in ast.walk(loop) if isinstance(part, ast.Call)]
    return any(method_of(part) == "backward" and part.lineno > node.lineno for part in calls)
