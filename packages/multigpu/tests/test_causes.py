"""The sentences of a cause that quote a text are told before all others."""

import pytest

from multigpu import explain
from multigpu.failures import catalogue
from multigpu.failures.lookup import look_up
from multigpu.failures.record import record
from multigpu.failures.sentences import quoting, sentences

CAUSE = (
    'The wording says why. "No kernel image": the card is newer. "Disk quota ... exceeded": the disk is full. '
    'A "cuda" in it says nothing. It also comes alone.'
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("RuntimeError: no  kernel image is available", '"No kernel image": the card is newer.'),
        ("Disk quota of user 7 exceeded", '"Disk quota ... exceeded": the disk is full.'),
        ("exceeded the disk quota", ""),
        ("cuda", ""),
    ],
)
def test_a_cause_quotes_the_words_of_a_case(line: str, told: str) -> None:
    assert quoting(CAUSE, (line,)) == told


def test_words_over_two_lines_are_quoted_too() -> None:
    assert quoting(CAUSE, ("there is no kernel", "image for this card")) == '"No kernel image": the card is newer.'


def test_what_a_short_cause_says_or_begins_with_is_not_repeated() -> None:
    assert quoting('"Disk quota exceeded" is a limit. A full disk is another.', ("Disk quota exceeded",)) == ""
    assert quoting('"No kernel image" is this. A. B. C. D.', ("no kernel image",)) == ""


def test_explain_tells_the_case_of_a_text_before_the_whole_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["RuntimeError: No CUDA GPUs are available"]) == 0
    yours, whole = capsys.readouterr().out.split("  yours:")[1].split("  cause:")
    assert "CUDA_VISIBLE_DEVICES" in yours and "the wheel for the CPU" not in yours
    assert "the wheel for the CPU" in " ".join(whole.split())


def test_an_answer_as_data_has_the_case_of_a_text() -> None:
    (first, *_) = record(look_up("RuntimeError: No CUDA GPUs are available"))["entries"]
    assert first["cause_of_these_lines"] in first["cause"]
    (named,) = record(look_up("no-gpu-found"))["entries"]
    assert "cause_of_these_lines" not in named


def test_no_cause_ends_within_a_quote_or_a_parenthesis() -> None:
    assert [e.id for e in catalogue() if e.cause.count('"') % 2 or e.cause.count("(") != e.cause.count(")")] == []


def test_sentences_that_lean_on_another_stay_with_it() -> None:
    assert sentences("A fails (see B. Then C). It ends. D is new.") == [
        "A fails (see B. Then C). It ends.",
        "D is new.",
    ]
