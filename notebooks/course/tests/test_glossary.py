"""The glossary: its page is what its words say, every word is found in its forms, and the rule can hold it."""

import re

import pytest

from course.kit.files import NOTEBOOKS
from course.tools import glossary
from course.tools.reading_order import place

TERMS = glossary.read_glossary()
NUMBERS = {path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")}


def test_the_page_is_what_the_words_say_today():
    written = glossary.PAGE.read_text(encoding="utf-8")
    assert written == glossary.page(TERMS), "docs/glossary.md is old: run `python -m course glossary` in notebooks/"
    assert len(re.findall(r"^\| .* \| .* \| .* \|$", written, re.MULTILINE)) == len(TERMS) + 1


def test_words_stand_once_in_the_order_of_the_series():
    names = [term.name.lower() for term in TERMS]
    assert len(set(names)) == len(names) > 40
    places = [place(term.notebook) for term in TERMS]
    assert places == sorted(places)
    assert {term.notebook for term in TERMS} <= NUMBERS


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_word_is_found_in_a_sentence_and_marked_alone(term):
    assert re.fullmatch(r"[A-Z`].+\.", term.meaning), "a sentence, or several"
    assert len(list(term.find(f"So the {term.name}, here."))) == 1
    assert not list(term.find(f"x{term.name}y"))
    for marked in (f"A *{term.name}* is", f"A **{term.name}**: what", f"**`{term.name}`** adds", f"* a *{term.name}*."):
        assert term.is_marked(marked), marked
    for plain in (f"A {term.name} is", f"*two* {term.name}", f"*one {term.name} of three*", f"* {term.name} * x *a*"):
        assert not term.is_marked(plain), plain


def test_forms_lines_and_code():
    terms = {term.name: term for term in TERMS}
    assert terms["state dict"].is_marked("a *state\ndict*") and list(terms["state dict"].find("state\ndicts"))
    assert list(terms["shard"].find("it is sharded")) and terms["FSDP"].is_marked("*fully sharded data parallel*")
    assert not list(terms["scatter"].find("torch.nn.parallel.scatter"))
    assert not list(terms["gather"].find("all_gather"))
