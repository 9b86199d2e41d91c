"""The four calls as the notebook has them: what is right, ours for the others, and a picture of which is which."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.kit.figures.palette import RIGHT_COLOUR, blend
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure
from course.kit.learn.by_key import find_exercise
from course.kit.learn.check import judge

DOES = {
    "scatter": "cuts the rows",
    "replicate": "copies the weights",
    "parallel_apply": "runs the copies",
    "gather": "joins the outputs",
}
BOX, HIGH, GAP, TOP, LEFT = 150, 62, 34, 52, 16


@dataclass(frozen=True)
class Calls:
    """A function for each call; `own` has the names of those that the notebook itself has."""

    scatter: Callable[..., Any]
    replicate: Callable[..., Any]
    parallel_apply: Callable[..., Any]
    gather: Callable[..., Any]
    own: tuple[str, ...]

    @property
    def figure(self) -> Figure:
        """The calls in their order, green where the notebook's function is the one that runs."""
        return _draw(self.own)


def complete(**functions: Callable[..., Any]) -> Calls:
    """The notebook's functions where they are right, and the reference elsewhere."""
    exercises = {name: find_exercise(f"02.{name}") for name in DOES}
    own = tuple(name for name in DOES if judge(exercises[name], functions[name]).solved)
    return Calls(**{name: functions[name] if name in own else exercises[name].reference for name in DOES}, own=own)


def _draw(own: tuple[str, ...]) -> Figure:
    width = 2 * LEFT + len(DOES) * BOX + (len(DOES) - 1) * GAP
    title = f"A step of DataParallel: {len(own)} of its {len(DOES)} calls are written"
    canvas = Canvas(width, TOP + HIGH + 16, title, _describe(own), at=(LEFT, 28))
    for k, (name, does) in enumerate(DOES.items()):
        _draw_call(canvas, LEFT + k * (BOX + GAP), name, does, name in own)
        if k:
            _draw_arrow(canvas, LEFT + k * (BOX + GAP) - GAP)
    return canvas.figure()


def _draw_call(canvas: Canvas, x: float, name: str, does: str, is_own: bool) -> None:
    fill, stroke = (blend(RIGHT_COLOUR, 0.25), RIGHT_COLOUR) if is_own else ("none", RULE)
    canvas.rect(x, TOP, BOX, HIGH, fill=fill, stroke=stroke, stroke_width=2, rx=6)
    canvas.text(x + BOX / 2, TOP + 21, name, anchor="middle", font_weight="bold")
    canvas.text(x + BOX / 2, TOP + 38, does, size=12, anchor="middle", fill=INK if is_own else FAINT)
    canvas.text(x + BOX / 2, TOP + 54, "✔ written" if is_own else "not yet", size=11, anchor="middle")


def _draw_arrow(canvas: Canvas, x: float) -> None:
    y = TOP + HIGH / 2
    canvas.line(x + 4, y, x + GAP - 5, y, stroke=FAINT, stroke_width=1.5)
    canvas.path(f"M{x + GAP - 10} {y - 4}L{x + GAP - 4} {y}L{x + GAP - 10} {y + 4}", fill="none", stroke=FAINT)


def _describe(own: tuple[str, ...]) -> str:
    states = (f"{name} {does}: {'written' if name in own else 'not yet written'}" for name, does in DOES.items())
    return "; ".join(states) + "."
