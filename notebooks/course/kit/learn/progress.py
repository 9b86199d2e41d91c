"""A tile for each puzzle: which of them a reader has solved, and where to go on."""

import dataclasses
from collections.abc import Callable, Sequence
from html import escape

from course.kit.learn.card import Card
from course.kit.learn.state import is_live, nothing_answered, recall

OPEN, DONE = "#8a8a8a", "#009e73"
TILE = (
    "display:inline-block;width:2.4em;margin:2px;padding:0.3em 0;border-radius:4px;text-align:center;border:2px solid"
)


def of_the_reader(draw: Callable[[], Card]) -> Card:
    """What `draw` shows of a reader's progress; a file keeps it as it is for somebody who has just begun."""
    if not is_live():
        return draw()
    with nothing_answered():
        still = draw()
    return dataclasses.replace(draw(), still=still)


def board(keys: Sequence[str]) -> Card:
    """The puzzles in order, numbered from 1; what is solved has a sign and a filled tile.

    Args:
        keys: "NN.name" of each puzzle.

    Returns:
        A card, whose text says how many are solved and which one comes next.
    """
    return of_the_reader(lambda: _board(keys))


def _board(keys: Sequence[str]) -> Card:
    solved = [recall("solved", key) is True for key in keys]
    tiles = "".join(_tile(number, key, done) for number, (key, done) in enumerate(zip(keys, solved, strict=True), 1))
    words = f"{sum(solved)} of {len(keys)} solved"
    if not all(solved):
        following = solved.index(False)
        words += f"; go on with {following + 1}, {keys[following].partition('.')[2]}"
    return Card(f"<p>{escape(words)}</p><div style='max-width:830px'>{tiles}</div>", f"{words}.")


def _tile(number: int, key: str, done: bool) -> str:
    colours = f"{DONE};background:{DONE};color:#fff" if done else OPEN
    sign = "✔" if done else number
    state = "solved" if done else "not yet"
    return f'<span title="{escape(key)}: {state}" style="{TILE} {colours}">{sign}</span>'
