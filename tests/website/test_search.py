"""Expressions of the catalogue's search, as JavaScript reads them."""

import re

import pytest

from multigpu.failures import reading
from website import search


def test_expressions_that_mean_the_same_stay_as_they_are():
    for pattern in (r"a\+\+b", r"(?:x|y)(?!z)\bw{2,3}\[\]", r"[^\]]\Sa"):
        assert search.in_javascript(pattern) == pattern


@pytest.mark.parametrize(
    "pattern", [r"\Aa", r"a\Z", "(?P<name>a)", "(?>a)", "a++", "a{,3}", "[]a]", "(?s:a)", "a(?#b)"]
)
def test_a_form_that_javascript_reads_otherwise_is_refused(pattern):
    with pytest.raises(ValueError, match="means something else in JavaScript"):
        search.in_javascript(pattern)


def test_letters_of_either_case_are_written_out():
    written = search.in_javascript(r"(?i:\bno(?:w)?)|x")
    assert written == r"(?:\b[nN][oO](?:[wW])?)|x"
    assert search.expression(re.compile("a", re.IGNORECASE | re.MULTILINE)) == ("a", "im")


def test_all_of_the_catalogue_is_translated():
    entries = search.data()["entries"]
    assert len(entries) > 150 and all(entry["patterns"] or entry["symptoms"] for entry in entries)
    assert "(?i" not in search.data()["expressions"]["WARNED"][0] and "(?i:" in reading.WARNED.pattern
