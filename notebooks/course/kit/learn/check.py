"""Run a reader's function through an exercise: solved, not solved yet, or a mistake and a counter-example."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from textwrap import fill
from typing import Any

from course.kit.learn.by_key import find_exercise
from course.kit.learn.card import Card, folded, inline
from course.kit.learn.example import example
from course.kit.learn.exercise import TODO, Case, Exercise, Mistake, show_apart
from course.kit.learn.state import recall, record
from course.kit.learn.surroundings import Surroundings, seed_all

SEED = 0  # the same inputs for everyone, so that two readers can talk about a counter-example
COLUMNS = 100
SOLVED = "✔ "  # so that "solved" and "not yet" differ at a glance; what is stored is never solved
MOVED = Mistake(
    "moved everybody",
    "you moved everybody: your function leaves a different GPU current, so every later bare `.cuda()` of this notebook "
    "would go there. Name the GPU, `x.to(device)`, or enter it for a few lines, `with torch.cuda.device(k):`.",
    '`set_device` is "discouraged in favor of" `torch.cuda.device`, says PyTorch\'s documentation, 2.15',
)

_hints_seen: dict[str, int] = {}  # steps taken in this kernel, for when nothing is kept on disk


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check. `mistake` is the named wrong answer, if it is one; `words` is what the reader sees."""

    solved: bool
    words: str
    mistake: Mistake | None = None


def check(key: str, function: Callable[..., Any]) -> None:
    """Print whether `function` solves the exercise; never raises for a wrong answer, so that "Run All" goes on.

    Raises KeyError for an unknown exercise and TypeError when `function` cannot be called.
    """
    exercise = find_exercise(key)
    if not callable(function):
        raise TypeError(f"check({key!r}, ...) wants the function itself, got {function!r}")
    verdict = judge(exercise, function)
    if verdict.solved:
        if recall("solved_at", key) is None:
            record("solved_at", key, time.time())  # the first time
        record("solved", key, True)
    sign = SOLVED if verdict.solved else ""
    for line in f"{sign}{key}: {verdict.words}".splitlines():
        print(fill(line, COLUMNS, subsequent_indent="  "))


def hint(key: str) -> None:
    """Print the next step of the hint ladder, the task before the first; after the last step, start again."""
    exercise = find_exercise(key)
    kept = recall("hints", key)
    step = _hints_seen.get(key, kept if isinstance(kept, int) else 0) % len(exercise.hints)
    _hints_seen[key] = step + 1
    record("hints", key, step + 1)
    if step == 0:
        print(f"Task: {exercise.task}")
    print(f"Hint {step + 1} of {len(exercise.hints)}: {exercise.hints[step]}")


def solution(key: str) -> Card:
    """The reference solution, folded."""
    return folded(f"Solution of {key}", find_exercise(key).solution)


def helps(key: str) -> Card:
    """An example, then the steps of the hint ladder and the reference solution, each folded on its own."""
    exercise = find_exercise(key)
    drawn = example(exercise)
    hints = [
        f"<details><summary>Hint {step} of {len(exercise.hints)}</summary><p>{inline(words)}</p></details>"
        for step, words in enumerate(exercise.hints, 1)
    ]
    answer = solution(key)
    folded_lines = f"{len(hints)} hints of {key} (folded). {answer.text}."
    return Card("".join([drawn.html, *hints, answer.html]), f"{drawn.text}\n{folded_lines}")


def judge(exercise: Exercise, function: Callable[..., Any]) -> Verdict:
    """Compare a function with the reference on every case, and a wrong one with the mistakes that have names.

    What the function changes around itself (current device, modes, seeds) is put back after each call. All generators
    are seeded before each call, so that the verdict does not depend on what the reader has drawn before.
    """
    around = Surroundings()  # making the cases draws numbers, too
    try:
        return _judge(exercise, function)
    finally:
        around.restore()


def _judge(exercise: Exercise, function: Callable[..., Any]) -> Verdict:
    seed_all(SEED)
    cases = exercise.cases(Random(SEED))
    given: list[Any] = []
    expected: list[Any] = []
    raised: Exception | None = None
    for case in cases:
        expected.append(_call(case, exercise.reference))  # first: the reader's function may change its arguments
        around = Surroundings((case.args, case.kwargs))
        try:
            given.append(_call(case, function))
        except NotImplementedError:
            given.append(TODO)
        except Exception as error:
            raised = error
            break
        finally:
            moved = around.moved_to()
            around.restore()
        if given[-1] is TODO:
            return Verdict(False, f'not solved yet. First hint: learn.hint("{exercise.key}")')
        if moved is not None:
            after = f"After {case.show(exercise.name)} the current GPU was {moved}, before it {around.device}."
            return Verdict(False, f"{_lead(MOVED)}\n  {after}", MOVED)
    if raised is not None:
        mistake = next((m for m in exercise.mistakes if _raises(m, case, raised)), None)
        call = f"{case.show(exercise.name)} raises {type(raised).__name__}: {_first_line(raised)}"
        return Verdict(False, f"{_lead(mistake)} {call}" if mistake is None else f"{_lead(mistake)}\n  {call}", mistake)
    wrong = _first_difference(exercise, given, expected)
    if wrong is None:
        return Verdict(True, f"solved. {len(cases)} calls agree with the reference.")
    mistake = next((m for m in exercise.mistakes if _is(m, exercise, cases, given)), None)
    mine, right = show_apart(given[wrong], expected[wrong])
    call = f"{cases[wrong].show(exercise.name)} gave {mine}; right is {right}."
    return Verdict(False, f"{_lead(mistake)}\n  {call}", mistake)


def _call(case: Case, function: Callable[..., Any]) -> Any:
    """The result of one call, in which a layer or an input that is drawn without a seed is the same for everybody."""
    seed_all(SEED)
    return case.call(function)


def _lead(mistake: Mistake | None) -> str:
    if mistake is None:
        return "not yet."
    return f"not yet: {mistake.message}" + (f" ({mistake.source})" if mistake.source else "")


def _first_difference(exercise: Exercise, given: Sequence[Any], expected: Sequence[Any]) -> int | None:
    pairs = enumerate(zip(given, expected, strict=True))
    return next((i for i, (mine, right) in pairs if not _agree(exercise, mine, right)), None)


def _agree(exercise: Exercise, given: Any, expected: Any) -> bool:
    """A reader may return anything; what cannot be compared is not right."""
    try:
        return bool(exercise.agree(given, expected))
    except Exception:
        return False


def _is(mistake: Mistake, exercise: Exercise, cases: Sequence[Case], given: Sequence[Any]) -> bool:
    if mistake.recognise is not None:
        try:
            return bool(mistake.recognise(cases, given))
        except Exception:  # a result of a kind that it does not expect
            return False
    return any(_gives(exercise, answer, cases, given) for answer in mistake.answers)


def _gives(exercise: Exercise, answer: Callable[..., Any], cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """Whether `answer` gives these results; one that raises does not."""
    for case, result in zip(cases, given, strict=True):
        try:
            named = _call(case, answer)
        except Exception:
            return False
        if not _agree(exercise, result, named):
            return False
    return True


def _raises(mistake: Mistake, case: Case, error: Exception) -> bool:
    """Whether an answer that makes the mistake raises the same error on the same case."""
    for answer in mistake.answers:
        try:
            _call(case, answer)
        except Exception as same:
            # the last line: the first one of an error in a replica says which replica, and nothing else
            if type(same) is type(error) and str(same).splitlines()[-1:] == str(error).splitlines()[-1:]:
                return True
    return False


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
