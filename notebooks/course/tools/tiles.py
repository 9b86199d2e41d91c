"""The notebooks as tiles by part: minutes, exercises that the reader has solved, and routes through them."""

from collections.abc import Iterable, Sequence
from html import escape

from course.kit.learn.card import Card
from course.kit.learn.progress import of_the_reader
from course.kit.learn.state import recall
from course.tools.lesson import Lesson
from course.tools.reading_order import PARTS, ROUTES, part_of

NEW, BEGUN, DONE = "#8a8a8a", "#e69f00", "#009e73"
TILE = (
    "display:inline-block;vertical-align:top;box-sizing:border-box;margin:2px;padding:0.3em 0.5em;border-radius:4px;"
    "text-decoration:none;color:inherit;line-height:1.3"
)
WIDE = "width:11.6em;min-height:5.2em"
WIDTH = "max-width:830px"


def tiles(lessons: Sequence[Lesson]) -> Card:
    """The series as a card: where to go on, the routes, and a tile for each notebook, which is a link to it.

    Args:
        lessons: all notebooks, in reading order.

    Returns:
        A card, whose text says how much is done and which notebook comes next.
    """
    return of_the_reader(lambda: _tiles(lessons))


def _tiles(lessons: Sequence[Lesson]) -> Card:
    known = {lesson.number: lesson for lesson in lessons}
    exercises = [key for lesson in lessons for key in lesson.exercises]
    solved = sum(map(_is_solved, exercises))
    following = _following(lessons)
    words = f"{solved} of {len(exercises)} exercises solved, in {len(lessons)} notebooks"
    further = f'go on with <a href="{following.file}">{escape(f"{following.number} {following.title}")}</a>'
    parts = "".join(_part(name, [x for x in lessons if part_of(x.number) == start]) for start, name in PARTS.items())
    return Card(
        f'<div style="{WIDTH}"><p>{words}; {further}.</p>{_routes(known)}{parts}</div>',
        f"{words}; go on with {following.number} {following.title}.",
    )


def hours(lessons: Iterable[Lesson]) -> str:
    """The minutes of some notebooks together, in half hours: `2½ h`."""
    halves = max(round(sum(lesson.minutes for lesson in lessons) / 30), 1)
    return f"{halves // 2 or ''}{'½' * (halves % 2)} h"


def _routes(known: dict[str, Lesson]) -> str:
    """A row for each route all of whose notebooks there are."""
    rows = ""
    for route in ROUTES:
        if known.keys() >= set(route.numbers):
            members = [known[number] for number in route.numbers]
            small = "".join(_tile(lesson, f"<b>{lesson.number}</b>") for lesson in members)
            rows += f"<p style='margin:0.6em 0'><b>{route.name}</b>, {hours(members)}: {route.able}.<br>{small}</p>"
    return rows


def _part(name: str, members: Sequence[Lesson]) -> str:
    if not members:
        return ""
    return f"<p style='margin:0.8em 0 0.2em'><b>{name}</b>, {hours(members)}</p>{''.join(map(_described, members))}"


def _described(lesson: Lesson) -> str:
    """A wide tile: the short title, the minutes, and how many exercises are solved."""
    solved, count = sum(map(_is_solved, lesson.exercises)), len(lesson.exercises)
    sign = "✔ " if solved == count else ""
    title = escape(lesson.title.partition(":")[0])
    done = f"<small>{lesson.minutes} min · {sign}{solved} of {count}</small>"
    return _tile(lesson, f"<b>{lesson.number}</b> {title}<br>{done}", WIDE)


def _tile(lesson: Lesson, inside: str, size: str = "") -> str:
    colour = DONE if _is_done(lesson) else BEGUN if _is_begun(lesson) else NEW
    style = f"{TILE};border:1px solid {colour};border-left:5px solid {colour};{size}"
    return f'<a href="{lesson.file}" title="{escape(lesson.title)}" style="{style}">{inside}</a>'


def _following(lessons: Sequence[Lesson]) -> Lesson:
    """The last notebook that was begun, as long as it is not done; else the first that is not."""
    begun = [lesson for lesson in lessons if _is_begun(lesson)]
    if begun and not _is_done(begun[-1]):
        return begun[-1]
    return next((lesson for lesson in lessons if not _is_done(lesson)), lessons[-1])


def _is_done(lesson: Lesson) -> bool:
    return all(map(_is_solved, lesson.exercises))


def _is_begun(lesson: Lesson) -> bool:
    return any(map(_is_solved, lesson.exercises)) or any(recall("predictions", key) for key in lesson.questions)


def _is_solved(key: str) -> bool:
    return recall("solved", key) is True
