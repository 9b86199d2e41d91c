"""The expressions of the catalogue end soon, also on texts that they do not fit."""

from collections.abc import Iterable
from re._parser import State, SubPattern, parse  # type: ignore[import-not-found]  # no public module takes them apart
from typing import Any

from multigpu.failures import catalogue

REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
SHORT = 8  # repetitions up to which a part of a group is not counted as one that takes any length
INSIDE = {"SUBPATTERN": -1, "ASSERT": 1, "ASSERT_NOT": 1, "MAX_REPEAT": 2, "MIN_REPEAT": 2}


def tries_every_cut(parts: Iterable[Any]) -> bool:
    r"""Whether an expression repeats a group whose parts take any length or may be missing, as `(\S+ ?){0,12}` does.

    It then tries all ways to cut a line into such pieces, which takes minutes where the rest does not fit.
    """
    for kind, what in parts:
        if str(kind) in REPEATS and what[1] > 1 and any(map(of_any_length, alternatives(list(what[2])))):
            return True
        inner = what[1] if str(kind) == "BRANCH" else [what[INSIDE[str(kind)]]] if str(kind) in INSIDE else []
        if any(map(tries_every_cut, inner)):
            return True
    return False


def alternatives(body: list[Any]) -> list[list[Any]]:
    """What stands in a group: each of its alternatives, or its only one."""
    if len(body) == 1 and str(body[0][0]) == "SUBPATTERN":
        return alternatives(list(body[0][1][-1]))
    if len(body) == 1 and str(body[0][0]) == "BRANCH":
        return [list(branch) for branch in body[0][1][1]]
    return [body]


def of_any_length(body: list[Any]) -> bool:
    """Whether one part of a body takes any length, and no part of another kind must be there to tell where it ends."""
    long = [part for part in body if str(part[0]) in REPEATS and part[1][1] > SHORT]
    others = [part for part in body if part not in long]
    return bool(long) and SubPattern(State(), others).getwidth()[0] == 0


def test_no_expression_takes_minutes_for_a_text_that_it_does_not_fit() -> None:
    assert tries_every_cut(parse(r"^(\S+ ?){0,12}\bDataParallel")) and tries_every_cut(parse(r"(a+|b)*c"))
    assert not tries_every_cut(parse(r"(\w+\.)*(megatron|nemo)\b.{0,80}(?!x)"))
    expressions = [
        (entry.id, expression)
        for entry in catalogue()
        for expression in (*entry.patterns, *entry.generic, *entry.unless, *entry.words)
    ]
    assert len(expressions) > 2000
    assert [found for found in expressions if tries_every_cut(parse(found[1]))] == []
