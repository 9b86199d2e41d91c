"""Predict, then run: a question before a surprising output, and the comparison after it."""

from collections.abc import Sequence
from html import escape
from typing import Any

from course.kit import live
from course.kit.learn.by_key import find_question
from course.kit.learn.card import EDGE, Card, inline
from course.kit.learn.question import Question, make_question
from course.kit.learn.state import is_live, recall, record

SECTION = "predictions"
OUTCOME = "Outcome"
OUTCOME_TEXT = f"{OUTCOME} of the run"  # begins the text of an output that answers a question; the site folds it

CHOICES, TOLD = "frcnn-lite-choices", "frcnn-lite-outcome"
# The card lists the choices for those who read the file; while there are buttons it need not say them twice.
STYLE = (
    f"<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .{CHOICES}:not(.jupyter-widgets-disconnected))"
    " ul{display:none}</style>"
)
# The figure or the numbers beside a folded outcome would tell it. They appear when it is opened; errors always do.
FOLD_ALL = (
    f"<style>.jp-OutputArea:has(details.{TOLD}:not([open]))>.jp-OutputArea-child:not(:has(.{TOLD},"
    "[data-mime-type$=error],[data-mime-type$=stderr])){display:none}</style>"
)
# So would the text below, up to the next cell of code. Each of its cells keeps one line, in the colours of its theme:
# a reader who goes from cell to cell by keyboard sees where they are.
BELOW = 3  # cells of text at most; CSS cannot say "up to the next cell of code"
HIDDEN = "The text here opens with the outcome above."
_TEXTS = ",".join("+.jp-MarkdownCell" * cells for cells in range(1, BELOW + 1))
HIDE_BELOW = (
    f"<style>.jp-Cell:has(details.{TOLD}:not([open])){{{_TEXTS}{{.jp-MarkdownOutput{{"
    f'>*{{display:none}}&::before{{content:"{HIDDEN}";font-style:italic}}}}}}}}</style>'
)
# A form's button, because GitHub drops it whole; of a <button> it would keep the words.
OPEN_ALL = (
    '<input type="button" value="Open all outcomes" style="float:right" onclick="'
    f"for(const told of(this.closest('.jp-Notebook')??document).querySelectorAll('details.{TOLD}'))told.open=true\">"
)

_asked: dict[str, Question] = {}  # the questions of this kernel, so that reveal() knows the choices


def predict(key: str, question: str | None = None, choices: Sequence[Any] = ()) -> None:
    """Ask before the run. Never waits: "Run All" goes on, and the answer can be given at any time.

    key: "NN.name", unique in the series. Without `question` it names one of `course/questions/nbNN.py`. So the source
    of the cell does not say once more what its output asks, not even on GitHub, which shows the source of every cell.
    question: one sentence, `code` between backticks; choices: two or more, compared as text.
    In a live JupyterLab buttons to choose with follow the question; a file keeps the question alone.
    Raises KeyError for a key without a question, and ValueError for fewer than two choices or one that is given twice.
    """
    from IPython.display import display

    asked = _asked[key] = find_question(key) if question is None else make_question(key, question, choices)
    display(question_card(asked))
    if is_live():
        display(_buttons(asked), metadata=live.metadata(still=None))


def question_card(asked: Question) -> Card:
    """The question as it is stored in the notebook."""
    items = "".join(f"<li>{inline(choice)}</li>" for choice in asked.choices)
    lines = [f"Predict: {asked.text}", *(f"  ( ) {choice}" for choice in asked.choices)]
    return Card(f"<b>Predict.</b> {inline(asked.text)}<ul>{items}</ul>", "\n".join(lines))


def outcome_card(words: str) -> Card:
    """The outcome as it is stored in the notebook, folded: whoever reads the question has not answered it yet.

    JupyterLab and nbconvert fold what else the cell shows with it, and hide the text below; GitHub, which ignores
    styles, shows both. Text cannot be folded, so there the outcome is at the end of its line, behind a warning. A test
    that compares stored outputs sees the outcome in both forms.
    """
    summary = f"<summary><b>{OUTCOME}</b> (open after you have answered)</summary>"
    details = f'<details class="{TOLD}">{summary}<div>{inline(words)}</div></details>'
    text = f"{OUTCOME_TEXT}, to be read after you have answered the question above: {words}"
    return Card(f"{FOLD_ALL}{HIDE_BELOW}{OPEN_ALL}{details}", text)


def reveal(key: str, outcome: Any) -> None:
    """Compare what the run gave with what was predicted; without a prediction, show what it gave folded.

    Raises KeyError when the question was not asked in this kernel, and ValueError when the outcome was not among its
    choices: then the notebook's claim is wrong, and its test fails.
    """
    from IPython.display import display

    if key not in _asked:
        raise KeyError(f"{key!r} was not asked yet: run the cell with learn.predict({key!r}) first")
    asked, happened = _asked[key], str(outcome)
    if happened not in asked.choices:
        raise ValueError(f"{key!r}: the run gave {happened!r}, which is none of the choices {list(asked.choices)}")
    folded, answer = outcome_card(happened), _answer(asked)
    if answer is None:
        display(folded)
    else:  # what this reader predicted is for them to see, and not for the file
        display(_compare(answer, happened), metadata=live.metadata(still=folded._repr_mimebundle_()))


def _answer(asked: Question) -> str | None:
    """What the reader chose, if they did and the choice still exists."""
    chosen = recall(SECTION, asked.key)
    return chosen if chosen in asked.choices else None


def _compare(answer: str, happened: str) -> Card:
    if answer == happened:
        words = f"You predicted {answer}, and so it is."
    else:
        words = f"You predicted {answer}; the run gave {happened}. Can you explain the difference?"
    return Card(f'<span class="{TOLD}"><b>{OUTCOME}:</b> {inline(words)}</span>', f"{OUTCOME}: {words}")


def _buttons(asked: Question) -> Any:
    """Radio buttons for below the question, none chosen until the reader does."""
    import ipywidgets

    answer = _answer(asked)
    options = ipywidgets.RadioButtons(options=asked.choices, value=answer, layout={"width": "max-content"})
    options.add_class(CHOICES)
    note = ipywidgets.HTML(_thanks(answer))

    def keep(change: Any) -> None:
        kept = record(SECTION, asked.key, change["new"])
        note.value = _thanks(change["new"], kept)

    options.observe(keep, names="value")
    return live.box([options], [note], border_left=EDGE, padding="0.1em 1em")


def _thanks(answer: str | None, kept: bool = True) -> str:
    """What stands below the buttons; kept: the answer is in the reader's file, and not in this kernel alone."""
    if answer is None:
        return f"{STYLE}<i>Choose, then run on.</i>"
    said = "Kept" if kept else "Yours until this kernel ends"
    # A click makes the question's cell the current one, which the first Shift+Enter runs again.
    return f"{STYLE}<i>{said}: {escape(answer)}. Press Shift+Enter twice: for the question, and for the run.</i>"
