"""What a page is made of before a browser sees it: docstrings, printed text, titles and the list of symptoms."""

import re

import nbformat
import pytest

pytest.importorskip("sphinx", reason="the site is built by Sphinx")

from multigpu.failures import CHAPTERS, catalogue
from multigpu.failures.marking import marked
from website import api, entry, failures, notebook


def test_what_a_function_returns_is_one_sentence_whatever_colons_it_has():
    lines = [
        "Sum it.",
        "",
        "Returns:",
        "    (B,) float32: the sum of each row,",
        "    never NaN.",
        "",
        "Raises:",
        "    X: y.",
    ]
    returned = [":returns: (B,) float32: the sum of each row,", "    never NaN."]
    assert api.with_returns(lines) == [*lines[:2], *returned, *lines[5:]]
    assert api.with_returns(lines[:2]) == lines[:2]


def test_the_list_of_modules_says_what_each_is_for():
    for line in api.index().removeprefix(api.INDEX).splitlines():
        assert len(line.partition("): ")[2]) > 20 and line.endswith("."), line


def test_lines_of_a_cell_are_broken_only_where_no_columns_would_be():
    printed = {"a sentence, and another one": True, "rows  gpus\n  10     2\n": False, "": False}
    for text, broken in printed.items():
        outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
        cell = nbformat.v4.new_code_cell("print(1)", outputs=outputs)
        notebook.as_page(nbformat.v4.new_notebook(cells=[cell]))
        assert (notebook.SENTENCES in cell.metadata["tags"]) == broken, text
    assert notebook.has_columns(nbformat.v4.new_output("error", traceback=["a"]))


@pytest.mark.parametrize(
    ("title", "shown"),
    [("a rank waits", "A rank waits"), ("barrier() guesses", "barrier() guesses"), ("`x` is", "`x` is")],
)
def test_a_name_of_a_program_keeps_its_letters_at_the_beginning_of_a_title(title, shown):
    assert entry.capital(title) == shown


def test_every_symptom_is_a_link_to_its_failure():
    shown = failures.symptoms()
    for failure in catalogue():
        asked = [marked(symptom.lower()) for symptom in failure.symptoms]
        assert all(f"- [{symptom}]({failure.id}.md)\n" in shown for symptom in asked), failure.id


def test_no_page_of_the_catalogue_shows_a_name_or_an_option_outside_of_code():
    """There `__slots__` would be bold, `<map object>` gone, and the hyphens of `--gpus` one dash."""
    parts = [failures.index(), *failures.pages().values(), *map(failures.chapter, CHAPTERS)]
    pages = re.sub(r"```(?s:.*?)```|(`+)(?!`).+?(?<!`)\1(?!`)", "", "\n".join(parts))
    assert re.findall(r".*(?<!\w)__\w.*|.*(?<!\S)--\w.*|.*<\w[^<>\n]*>.*", pages) == []
