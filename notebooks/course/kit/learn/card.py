"""What learn shows: a little HTML that needs no style sheet, and the same words as text."""

import re
from dataclasses import dataclass
from html import escape
from typing import Any

EDGE = "4px solid #0072b2"
STRIPE = f"border-left:{EDGE};padding:0.3em 1em;margin:0.3em 0"


@dataclass(frozen=True)
class Card:
    """A boxed output: `html` for JupyterLab and GitHub, `text` for terminals, tests and notebooks not yet trusted."""

    html: str
    text: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": f'<div style="{STRIPE}">{self.html}</div>', "text/plain": self.text}


def folded(summary: str, code: str) -> Card:
    """Code behind one line that opens on a click; the text form keeps it folded."""
    html = f"<details><summary>{inline(summary)}</summary><pre>{escape(code.rstrip())}</pre></details>"
    return Card(html, f"{summary} (folded)")


def inline(words: str) -> str:
    """HTML of one paragraph: escaped, with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words, quote=False))
