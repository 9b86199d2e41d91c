"""The scoreboard of the reader's own training step: a few counts before and after a repair."""

from collections.abc import Sequence
from dataclasses import dataclass

from frcnn_lite.viz.palette import BLUE, VERMILLION
from frcnn_lite.viz.svg import FAINT, RULE, Canvas, Figure

NAMES, BAR, STEP, TOP = 190, 200, 34, 62


@dataclass(frozen=True)
class Score:
    """One line: `value` of `best`. `less_is_better` for counts that a repair brings down, whose best is 0 of `best`."""

    name: str
    value: float
    best: float
    less_is_better: bool = False

    @property
    def reached(self) -> bool:
        """Whether nothing is left to gain."""
        return self.value == (0 if self.less_is_better else self.best)

    def __post_init__(self) -> None:
        if not 0 <= self.value <= self.best:
            raise ValueError(f"{self.name}: value {self.value} is not between 0 and {self.best}")


def scoreboard(*columns: tuple[str, Sequence[Score]]) -> Figure:
    """One bar per score, in as many columns as there are versions of the step.

    columns: (name of the version, its scores); every version has the same scores in the same order.
    """
    if not columns:
        raise ValueError("scoreboard needs at least one (name, scores) column")
    names = [[score.name for score in scores] for _, scores in columns]
    if any(other != names[0] for other in names):
        raise ValueError(f"the columns list different scores: {names}")
    size = (NAMES + len(columns) * (BAR + 60) + 10, TOP + STEP * len(names[0]) + 8)
    canvas = Canvas(*size, "Scoreboard of the training step", _describe(columns))
    for line, name in enumerate(names[0]):
        canvas.text(16, TOP + STEP * line + 17, name)
    for k, (version, scores) in enumerate(columns):
        x = NAMES + k * (BAR + 60)
        canvas.text(x, 30, version, size=14, font_weight="bold")
        for line, score in enumerate(scores):
            _draw_score(canvas, score, x, TOP + STEP * line)
    return canvas.figure()


def _draw_score(canvas: Canvas, score: Score, x: float, y: float) -> None:
    colour = BLUE if score.reached else VERMILLION
    canvas.rect(x, y, BAR - 20, 22, fill="none", stroke=RULE, rx=4)
    if score.value:
        canvas.rect(x, y, (BAR - 20) * score.value / max(score.best, 1), 22, fill=colour, rx=4)
    canvas.text(x + BAR - 12, y + 16, f"{score.value:g} of {score.best:g}", size=12, fill=FAINT)


def _describe(columns: Sequence[tuple[str, Sequence[Score]]]) -> str:
    words = []
    for version, scores in columns:
        words.append(f"{version}: " + ", ".join(f"{s.name} {s.value:g} of {s.best:g}" for s in scores))
    return "; ".join(words) + "."
