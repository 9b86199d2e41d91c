"""The expressions of the catalogue end soon, also on texts that they do not fit."""

import re
import time
from collections.abc import Iterable
from re._parser import State, SubPattern, parse  # type: ignore[import-not-found]  # no public module takes them apart
from typing import Any

import pytest

from multigpu.failures import catalogue, reading
from multigpu.failures.match import answer

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
        for expression in (*entry.patterns, *entry.generic, *entry.unless)
    ]
    assert len(expressions) > 2000
    assert [found for found in expressions if tries_every_cut(parse(found[1]))] == []


def test_no_repetition_of_an_expression_is_endless_but_where_it_is_tied_to_the_beginning() -> None:
    assert reading.bounded(r"a\*[*+]\w+x*?") == r"a\*[*+]\w{1,4000}x{0,4000}?"
    assert reading.bounded("^.*a") == "^.*a"
    for entry in catalogue():
        for expression in (*entry.patterns, *entry.generic, *entry.unless):
            assert expression.startswith("^") or not endless(parse(reading.bounded(expression)).data), expression


def endless(parts: Iterable[Any]) -> bool:
    """Whether an expression repeats something more often than any bound of the catalogue allows."""
    return any("MAXREPEAT" in str(part) for part in parts)


LONG_TEXTS = {
    "the log of a run": "step {}: 8 GPUs, best not yet saved\n",
    "words": "w{0}ord and{0} m{0}ore ",
    "one word": "abcdefgh",
    "digits": "1",
    "lines": "\n",
    "signs": "(.",
}


@pytest.mark.parametrize("text", LONG_TEXTS)
def test_of_a_long_text_no_more_is_read_than_of_a_short_log(text: str) -> None:
    """So a megabyte takes the time of a log of some pages, plus what it takes to go through its lines once."""
    form = LONG_TEXTS[text]
    whole = "".join(form.format(chr(97 + n % 26) * (1 + n // 26 % 60)) for n in range(600_000 // len(form)))
    read = reading.unrepeated(reading.plain_text(whole))
    assert len(read) <= reading.LONG and not re.search(r"\w{201}", read)


def test_an_error_in_the_middle_of_a_long_log_is_found() -> None:
    words = ["".join(chr(97 + n // 26**k % 26) for k in range(4)) for n in range(40_000)]
    lines = [" ".join(words[n : n + 20]) for n in range(0, len(words), 20)]
    lines[1000] = (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    )
    said = answer("\n".join(lines))
    assert said.sure and said.entries[0].id == "two-devices"


def test_the_time_for_a_log_grows_with_its_length_alone() -> None:
    def seconds(lines: int) -> float:
        log = "".join(f"step {number}: 8 GPUs, best not yet saved\n" for number in range(lines))
        times = []
        for _ in range(3):
            begin = time.process_time()
            answer(log)
            times.append(time.process_time() - begin)
        return min(times)

    answer("warm up")
    assert seconds(200) < 4 * seconds(100)
