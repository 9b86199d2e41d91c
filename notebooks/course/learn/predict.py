"""Predict, then run: a question before a surprising output, and the comparison after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from course import live
from course.learn.card import EDGE, Card, inline
from course.learn.state import is_live, recall, record

SECTION = "predictions"

CHOICES = "frcnn-lite-choices"
# The card lists the choices for those who read the file; while there are buttons it need not say them twice.
STYLE = (
    f"<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .{CHOICES}:not(.jupyter-widgets-disconnected))"
    " ul{display:none}</style>"
)


@dataclass(frozen=True)
class Prediction:
    """A question with its choices; the reader's answer, if any, is kept by `learn.state`."""

    key: str
    question: str
    choices: tuple[str, ...]

    @property
    def answer(self) -> str | None:
        """What the reader chose, if they did and the choice still exists."""
        chosen = recall(SECTION, self.key)
        return chosen if chosen in self.choices else None

    def card(self) -> Card:
        """The question as it is stored in the notebook."""
        items = "".join(f"<li>{inline(choice)}</li>" for choice in self.choices)
        lines = [f"Predict: {self.question}", *(f"  ( ) {choice}" for choice in self.choices)]
        return Card(f"<b>Predict.</b> {inline(self.question)}<ul>{items}</ul>", "\n".join(lines))


_asked: dict[str, Prediction] = {}  # the questions of this kernel, so that reveal() knows the choices


def predict(key: str, question: str, choices: Sequence[Any]) -> None:
    """Ask before the run. Never waits: "Run All" goes on, and the answer can be given at any time.

    key: "NN.name", unique in the series; question: one sentence, `code` between backticks; choices: two or more,
    compared as text. In a live JupyterLab buttons to choose with follow the question; a file keeps the question alone.
    Raises ValueError for fewer than two choices or one that is given twice.
    """
    from IPython.display import display

    texts = tuple(str(choice) for choice in choices)
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise ValueError(f"choices must be two or more different ones, got {list(texts)}")
    asked = _asked[key] = Prediction(key, question, texts)
    display(asked.card())
    if is_live():
        display(_buttons(asked), metadata=live.metadata(still=None))


def reveal(key: str, outcome: Any) -> None:
    """Compare what the run gave with what was predicted.

    Raises KeyError when the question was not asked in this kernel, and ValueError when the outcome was not among its
    choices: then the notebook's claim is wrong, and its test fails.
    """
    from IPython.display import display

    if key not in _asked:
        raise KeyError(f"{key!r} was not asked yet: run the cell with learn.predict({key!r}, ...) first")
    asked, happened = _asked[key], str(outcome)
    if happened not in asked.choices:
        raise ValueError(f"{key!r}: the run gave {happened!r}, which is none of the choices {list(asked.choices)}")
    neutral = _outcome(happened)
    if asked.answer is None:
        display(neutral)
    else:  # what this reader predicted is for them to see, and not for the file
        display(_compare(asked, happened), metadata=live.metadata(still=neutral._repr_mimebundle_()))


def _outcome(words: str) -> Card:
    return Card(f"<b>Outcome:</b> {inline(words)}", f"Outcome: {words}")


def _compare(asked: Prediction, happened: str) -> Card:
    if asked.answer == happened:
        words = f"You predicted {asked.answer}, and so it is."
    else:
        words = f"You predicted {asked.answer}; the run gave {happened}. Where do the two part?"
    return _outcome(words)


def _buttons(asked: Prediction) -> Any:
    """Radio buttons for below the question, none chosen until the reader does."""
    import ipywidgets

    options = ipywidgets.RadioButtons(options=asked.choices, value=asked.answer, layout={"width": "max-content"})
    options.add_class(CHOICES)
    note = ipywidgets.HTML(_thanks(asked.answer))

    def keep(change: Any) -> None:
        kept = record(SECTION, asked.key, change["new"])
        note.value = _thanks(change["new"], kept)

    options.observe(keep, names="value")
    return live.box([options], [note], border_left=EDGE, padding="0.1em 1em")


def _thanks(answer: str | None, kept: bool = True) -> str:
    """What stands below the buttons; kept: the answer is in the reader's file, and not in this kernel alone."""
    if answer is None:
        words = "Choose, then run on."
    elif kept:
        words = f"Kept: {escape(answer)}. Now run on."
    else:
        words = f"Yours until this kernel ends: {escape(answer)}. Now run on."
    return f"{STYLE}<i>{words}</i>"
