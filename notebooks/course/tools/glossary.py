"""The glossary of the series: which notebook explains a word of the field first, and what the word means.

    python -m course glossary     # writes docs/glossary.md anew

The words stand in `glossary.toml` beside this file. That each is explained before it is used is a rule for notebooks.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.kit.files import NOTEBOOKS
from course.tools.generated import write_or_check

DATA = Path(__file__).with_suffix(".toml")
PAGE = NOTEBOOKS.parent / "docs" / "glossary.md"
# *word* or **word**, with or without the backticks of code. A "* " begins an item of a list.
EMPHASISED = re.compile(r"(?<![*\w])(\*{1,2})(?![\s*])([^*]+?)\1(?![*\w])")


@dataclass(frozen=True)
class Term:
    """A word: its name, the number of the notebook that explains it, a sentence, and a pattern for all its forms."""

    name: str
    notebook: str
    meaning: str
    words: str = ""

    @property
    def _forms(self) -> str:
        return self.words or rf"{re.escape(self.name)}s?"

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Where the word stands in a text, in any of its forms."""
        return re.finditer(rf"(?<![\w.]){self._of_any_spacing}(?!\w)", text, re.IGNORECASE)

    @property
    def _of_any_spacing(self) -> str:
        return f"(?:{self._forms})".replace("\\ ", " ").replace(" ", r"\s+")

    def is_marked(self, text: str) -> bool:
        """Whether the word stands in the text alone between asterisks, the mark of the place that explains it."""
        alone = (match[2].strip("`.,:") for match in EMPHASISED.finditer(text))
        return any(re.fullmatch(self._of_any_spacing, words, re.IGNORECASE) for words in alone)


def read_glossary(data: Path = DATA) -> list[Term]:
    """All terms, in the order in which the series explains them."""
    return [Term(**entry) for entry in tomllib.loads(data.read_text(encoding="utf-8"))["term"]]


def page(terms: list[Term]) -> str:
    """The glossary as a page, by the alphabet; a term of a notebook that does not exist has no link."""
    files = {path.name[:2]: path.name for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")}
    lines = [
        "# Glossary",
        "",
        "The words of the field that the notebooks use, with the notebook that explains each of them first. Written by",
        "`python -m course glossary` (in `notebooks/`) from `notebooks/course/tools/glossary.toml`.",
        "",
        "| word | meaning | explained in |",
        "|---|---|---|",
    ]
    for term in sorted(terms, key=lambda term: term.name.lower()):
        file = files.get(term.notebook)
        where = f"[{term.notebook}](../notebooks/{file})" if file else term.notebook
        lines.append(f"| {term.name} | {term.meaning} | {where} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say under --check which are out of date."""
    return write_or_check("glossary", __doc__, lambda: {PAGE: page(read_glossary())}, arguments)
