"""What learn shows: a little HTML that needs no style sheet, and the same words as text."""

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from course.kit.live import metadata

EDGE = "4px solid #0072b2"
STRIPE = f"border-left:{EDGE};padding:0.3em 1em;margin:0.3em 0"


@dataclass(frozen=True)
class Card:
    """A boxed output: `html` for JupyterLab and GitHub, `text` for terminals, tests and notebooks not yet trusted.

    One that shows what a reader has done names what a file keeps in its place, its `still` twin.
    """

    html: str
    text: str
    still: "Card | None" = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        bundle = {"text/html": f'<div style="{STRIPE}">{self.html}</div>', "text/plain": self.text}
        return bundle if self.still is None else (bundle, metadata(still=self.still._repr_mimebundle_()))


def folded(summary: str, code: str) -> Card:
    """Code behind one line that opens on a click; the text form keeps it folded."""
    html = f"<details><summary>{inline(summary)}</summary><pre>{escape(code.rstrip())}</pre></details>"
    return Card(html, f"{summary} (folded)")


def inline(words: str) -> str:
    """HTML of one paragraph: escaped, with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words, quote=False))
