"""The door to the lessons: what a notebook asks for by its key, "NN.name", and what there is to ask for."""

from importlib import import_module
from pathlib import Path

from course.kit.learn.exercise import Exercise
from course.kit.learn.puzzle import read_puzzle
from course.kit.learn.question import Question

LESSONS = Path(__file__).parents[2] / "lessons"


def find_exercise(key: str) -> Exercise:
    """The exercise "NN.name", which is in `course/lessons/nbNN/puzzles/name.py`. Raises KeyError if there is none."""
    number, _, name = key.partition(".")
    known = exercise_names(number)
    if name not in known:
        raise KeyError(_unknown(key, "exercise", number, known, "01.rows_lost"))
    return read_puzzle(import_module(f"course.lessons.nb{number}.puzzles.{name}"))


def exercise_names(number: str) -> list[str]:
    """The names of a notebook's exercises, by the alphabet; none where there is no such notebook."""
    return sorted(path.stem for path in (LESSONS / f"nb{number}" / "puzzles").glob("[!_]*.py"))


def find_question(key: str) -> Question:
    """The question "NN.name", which is in `course/lessons/nbNN/questions.py`. Raises KeyError if there is none."""
    number = key.partition(".")[0]
    known = {question.key: question for question in questions(number)}
    if key not in known:
        raise KeyError(_unknown(key, "question", number, [*known], "01.keyword"))
    return known[key]


def questions(number: str) -> tuple[Question, ...]:
    """The questions of a notebook, in the order in which it asks them; none where there is no such notebook."""
    if not (LESSONS / f"nb{number}" / "questions.py").exists():
        return ()
    return import_module(f"course.lessons.nb{number}.questions").QUESTIONS


def _unknown(key: str, kind: str, number: str, known: list[str], example: str) -> str:
    if not known:
        return f"{key!r}: there are no {kind}s of notebook {number!r}; a key reads like {example!r}"
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{key!r} is not {article} {kind}; notebook {number} has {', '.join(known)}"
