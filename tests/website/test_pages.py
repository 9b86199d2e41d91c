"""What a page is made of before a browser sees it: docstrings, printed text, titles and the list of symptoms."""

import re

import nbformat
import pytest
import yaml

pytest.importorskip("sphinx", reason="the site is built by Sphinx")

from multigpu.failures import CHAPTERS, catalogue
from multigpu.failures.marking import marked
from multigpu.failures.sentences import sentences
from website import api, entry, failures, layout, lighter, notebook, prose, topics, twins


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


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("It fails. It is late. Then stop.", ["It fails. It is late. Then stop."]),
        ('Say "no. Never" to it. More.', ['Say "no. Never" to it.', "More."]),
        ("Use a (b. C) here. `x. Y` too.", ["Use a (b. C) here.", "`x. Y` too."]),
        ("torch 2.1 and e.g. x.y stay. End", ["torch 2.1 and e.g. x.y stay.", "End"]),
    ],
)
def test_a_text_is_cut_between_sentences_alone(text, pieces):
    assert sentences(text) == pieces and " ".join(pieces) == text


def test_only_a_long_text_becomes_a_list():
    assert prose.listed("A. B. C.") == "A. B. C.\n"
    assert prose.listed("A. B. C. D.") == "A.\n\n- B.\n- C.\n- D.\n"


def test_a_page_of_a_failure_begins_with_its_message_and_its_repair():
    by_name = {failure.id: failure for failure in catalogue()}
    page = entry.page(by_name["two-devices"])
    order = [
        "# `Expected all tensors to be on the same device",
        "{admonition} Fix",
        "## Which of these",
        "## How to find",
    ]
    places = [page.index(part) for part in order]
    assert places == sorted(places) and "```diff" in page and page.count("<details>") == page.count("</details>") == 3
    silent = entry.page(by_name["rows-lost"])
    assert "# DataParallel returns fewer rows than it was given\n" in silent and "It ends in `5 rows" in silent


def test_what_a_search_engine_shows_is_in_the_head_of_the_page():
    for failure in catalogue():
        head = yaml.safe_load(entry.page(failure).split("---\n")[1])["myst"]["html_meta"]
        assert failure.title in head["description"] or entry.capital(failure.title) in head["description"]
        assert len(head) == 3 and head["property=og:title"] in head["description"]


def test_a_twin_has_all_that_a_page_folds():
    for failure in catalogue():
        text = twins.failure(failure)
        assert all(part.strip() in text for part in (failure.cause, failure.fix, failure.check, failure.repaired))


def test_a_twin_of_a_notebook_keeps_its_questions_open():
    nb = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("See [02](02_b.ipynb#x)."),
            nbformat.v4.new_code_cell("print(1)", outputs=[nbformat.v4.new_output("stream", text="1\n")]),
            nbformat.v4.new_code_cell("learn.predict('x')", metadata={"jupyter": {"source_hidden": True}}),
            nbformat.v4.new_code_cell(
                "f()",
                outputs=[
                    nbformat.v4.new_output("display_data", data={"text/plain": f"{notebook.OUTCOME_TEXT}: 5 rows"})
                ],
            ),
        ]
    )
    assert (
        twins.notebook(nb)
        == "See [02](02_b.md#x).\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nf()\n```\n"
    )


def test_a_page_loses_the_scripts_that_a_first_visit_does_not_need():
    page = (
        '<meta name="viewport" content="a"><meta name="viewport" content="b">\n'
        '<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>\n'
        '<script src="_static/searchtools.js"></script><script src="searchindex.js"></script>'
        '<script src="ask.js"></script>'
    )
    assert (
        lighter.lightened(page, is_search=False) == '<meta name="viewport" content="b"><script src="ask.js"></script>'
    )
    assert "searchindex.js" in lighter.lightened(page, is_search=True)


def test_every_topic_leads_to_a_page():
    pages = {path.replace(".ipynb", ".html").replace(".md", ".html") for path in layout.layout().pages}
    assert {page for _, page in topics.pages()} <= pages and topics.words()["fsdp"][0] == "FSDP2"


def test_every_symptom_is_a_link_to_its_failure():
    shown = failures.symptoms()
    for failure in catalogue():
        asked = [marked(symptom.lower()) for symptom in failure.symptoms]
        assert all(f"- [{symptom}]({failure.id}.md)\n" in shown for symptom in asked), failure.id


def test_no_page_of_the_catalogue_shows_a_name_or_an_option_outside_of_code():
    """There `__slots__` would be bold, `<map object>` gone, and the hyphens of `--gpus` one dash."""
    parts = [failures.index(), *failures.pages().values(), *map(failures.chapter, CHAPTERS)]
    head = r"^---\nmyst:(?s:.*?)\n---\n"
    ours = r"</?(?:details|summary|form|label|textarea|button|div|p)\b[^<>]*>"
    pages = re.sub(
        rf"{head}|{ours}|^````.*$|```(?s:.*?)```|(`+)(?!`).+?(?<!`)\1(?!`)", "", "\n".join(parts), flags=re.MULTILINE
    )
    assert re.findall(r".*(?<!\w)__\w.*|.*(?<!\S)--\w.*|.*<\w[^<>\n]*>.*", pages) == []
