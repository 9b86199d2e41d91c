"""A search field over the catalogue of failures, for a notebook: `search()` as the last line of a cell."""

from html import escape
from typing import Any

from course.kit import live
from course.kit.files import NOTEBOOKS
from multigpu.failures import Failure, catalogue
from multigpu.failures.match import answer, matching
from multigpu.failures.ranking import ranked

SHOWN = 12  # of more, nobody reads the last
OPEN = 2  # so few results are shown unfolded
MONOSPACE = "white-space:pre-wrap;font-family:monospace;margin:8px 0"


def find(text: str) -> list[Failure]:
    """Entries for what somebody typed: those whose message it holds, then those with all of its words.

    Before the latter come the symptoms, so that "stuck" finds what hangs. An empty text finds everything.
    """
    words = text.lower().split()
    holding = [entry for entry in catalogue() if all(word in _seen(entry) + _told(entry) for word in words)]
    holding.sort(key=lambda entry: -sum(word in _seen(entry) for word in words))
    if not words:
        return holding
    said = answer(text)
    if said.sure:
        return list(said.entries)
    first = [entry for entry in said.entries if len(words) > 3 or entry.symptoms]
    return first + [entry for entry in holding if entry not in first] or matching(text) or ranked(text)


def _seen(entry: Failure) -> str:
    """What a user sees of a failure, in lower case."""
    return " ".join((entry.id, entry.title, entry.message, *entry.older)).lower()


def _told(entry: Failure) -> str:
    """What the catalogue says about it, in lower case."""
    return " ".join((entry.cause, entry.fix, entry.program, entry.helper)).lower()


class FailureSearch:
    """The field, and below it what it finds; one line of text wherever no kernel answers."""

    def __init__(self) -> None:
        import ipywidgets

        self.field = ipywidgets.Textarea(
            placeholder="words, an error message, or a whole traceback",
            rows=2,
            layout={"width": "auto", "flex": "1 1 auto"},
        )
        self.results = ipywidgets.HTML()
        self.results.add_class("jp-RenderedHTMLCommon")  # JupyterLab's own style for text and code
        self.field.observe(self._show, names="value")
        self._show()
        self.widget = live.box([self.field], [self.results])

    def _show(self, _change: Any = None) -> None:
        typed = self.field.value.strip()
        found = find(typed)
        shown = found[:SHOWN] if typed else []
        more = f", the first {SHOWN} of them below" if typed and len(found) > SHOWN else ""
        head = f"<p aria-live='polite'><b>{len(found)}</b> {'entry' if len(found) == 1 else 'entries'}{more}</p>"
        self.results.value = head + "".join(entry_html(entry, len(shown) <= OPEN) for entry in shown)

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, Any]:
        text = f"Live in JupyterLab: a field that searches {len(catalogue())} failures."
        return {**self.widget._repr_mimebundle_(**formats), "text/plain": text}


def search() -> FailureSearch:
    """The search field, to be the last line of a cell."""
    return FailureSearch()


def entry_html(entry: Failure, unfolded: bool = False) -> str:
    """An entry as a fold: its title; inside, message, cause, program, fix and where to read on."""
    parts = [f"<pre style='{MONOSPACE}'>{escape(entry.message)}</pre>", f"<p><b>Cause.</b> {escape(entry.cause)}</p>"]
    parts += [f"<p><b>Find out.</b> {escape(entry.check)}</p>"] if entry.check else []
    parts += [_program(entry.program)] if entry.program else []
    parts += [f"<p><b>Fix.</b> {escape(entry.fix)}</p>"] + ([_program(entry.repaired)] if entry.repaired else [])
    if entry.helper:
        parts.append(f"<p><b>Helper.</b> <code>python -m frcnn_lite copy {entry.helper}</code></p>")
    links = [f"<a href='{t.url}' target='_blank'>{escape(t.cited.replace('*', ''))}</a>" for t in entry.threads]
    if entry.notebook:
        links.insert(0, f"notebook {_notebook(entry)}, {escape(entry.section)}")
    parts.append(f"<p>{'<br>'.join(links)}</p>")
    summary = f"<summary><b>{entry.id}</b>: {escape(entry.title)} <i>({entry.marks})</i></summary>"
    return f"<details{' open' if unfolded else ''}>{summary}{''.join(parts)}</details>"


def _notebook(entry: Failure) -> str:
    """The file name of the notebook that treats a failure."""
    return next(path.name for path in NOTEBOOKS.glob(f"{entry.notebook}_*.ipynb"))


def _program(text: str) -> str:
    return f"<pre style='{MONOSPACE};padding:6px 10px;border-left:3px solid #59636e'>{escape(text.strip())}</pre>"
