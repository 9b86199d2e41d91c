"""The catalogue among the notebooks: its page, its search field, and the places that its entries lead to."""

import json
import re
from pathlib import Path

import pytest

from course.tools.failures_page import INDEX, NOTEBOOK_PAGE, notebook_page
from course.tools.failures_search import SHOWN, entry_html, find, search
from frcnn_lite.cli import copy
from multigpu.failures import CHAPTERS, catalogue
from website.links import anchored

IDS = {entry.id: entry for entry in catalogue()}


def markdown(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines()]


def test_page_among_the_notebooks_is_in_step() -> None:
    assert NOTEBOOK_PAGE.read_text(encoding="utf-8") == notebook_page(), "run python -m course.tools.failures_page"


def test_page_shows_no_name_and_no_option_outside_of_code() -> None:
    prose = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", "\n".join(markdown(NOTEBOOK_PAGE)))
    assert re.findall(r".*(?<!\w)__\w.*|.*(?<!\S)--\w.*", prose) == []


def test_every_chapter_leads_to_its_heading_in_the_index() -> None:
    lines = (NOTEBOOK_PAGE.parent / INDEX).read_text(encoding="utf-8").splitlines()
    anchors = {anchored(line.removeprefix("## ")) for line in lines if line.startswith("## ")}
    linked = re.findall(rf"\({re.escape(INDEX)}(#[^)]+)\)", "\n".join(markdown(NOTEBOOK_PAGE)))
    assert len(linked) == len(CHAPTERS) and set(linked) == anchors


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("batchnorm running statistics", "running-statistics"),
        ("BatchNorm one row", "batch-of-one"),
        ("out of memory", "out-of-memory"),
        ("stuck", "collective-time-out"),
        ("StopIteration", "no-parameters"),
        ("in the middle of a log\n" + IDS["two-devices"].message, "two-devices"),
    ],
)
def test_search_finds(typed: str, expected: str) -> None:
    assert find(typed)[0].id == expected


def test_search_field_shows_what_it_finds() -> None:
    field = search()
    assert find("") == list(catalogue()) and "<details" not in field.results.value
    field.field.value = "found at least two devices"
    assert field.results.value.startswith("<p aria-live='polite'><b>1</b> entry</p><details open>")
    assert entry_html(IDS["two-devices"], unfolded=True) in field.results.value
    field.field.value = "device"
    assert field.results.value.count("<details>") == SHOWN < len(find("device"))
    field.field.value = "zzz qqq"
    assert "<b>0</b> entries" in field.results.value
    assert field._repr_mimebundle_()["text/plain"].startswith("Live in JupyterLab")


def test_entry_in_html_is_escaped_and_whole() -> None:
    entry = IDS["tests-need-two-gpus"]
    html = entry_html(entry)
    assert "device_count() &gt;= 2" in html and entry.threads[0].url in html and "<details>" in html


def test_entries_lead_to_helpers_that_exist() -> None:
    assert [entry.id for entry in catalogue() if entry.helper and entry.helper not in copy.helpers()] == []
