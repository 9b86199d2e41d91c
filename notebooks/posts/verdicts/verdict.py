"""Mark a test as the proof of a verdict on one line of a post.

`docs/verdicts.md` lists these marks. It is written by `python notebooks/posts/verdicts/table.py`, which runs the proofs
first and refuses to write while one of them fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

RULINGS = {
    "right": "still so today, as it was stated",
    "right then": "changed since",
    "incomplete": "true in the case that the post shows, and not in general",
    "wrong": "not so in that case either",
    "typo": "a slip in the listing; what was meant is clear, and right",
    "not tried": "it needs what this project does not have; the reason says what was tried in its place",
}
Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Verdict:
    """One row: `claim` paraphrases what `post` says at `place`; `because` is what the test named `proof` shows.

    `notebook` is the one that shows it, where its sources have these `words`; both are "" where only the proof does.
    """

    post: str
    place: str
    claim: str
    ruling: str
    because: str
    notebook: str
    words: str
    proof: str


def verdict(
    post: str, place: str, *, claim: str, ruling: str, because: str, notebook: str = "", words: str = ""
) -> Callable[[Test], Test]:
    """Mark the decorated test, as its attribute `verdict`, as the proof of a ruling (see `RULINGS`) on a claim."""
    if ruling not in RULINGS:
        raise ValueError(f"ruling must be one of {list(RULINGS)}, got {ruling!r}")

    def mark(test: Test) -> Test:
        row = Verdict(post, place, claim, ruling, because, notebook, words, test.__name__)
        test.verdict = row  # type: ignore[attr-defined]
        return test

    return mark
