"""Predictions: fixed output when nobody is there, comparison when a reader answered."""

import pytest

from course.kit import learn
from course.kit.learn.by_key import find_question
from course.kit.learn.predict import outcome_card, question_card
from course.kit.learn.state import recall


@pytest.fixture
def shown(monkeypatch):
    """What the calls display."""
    import IPython.display

    outputs = []

    def display(shown, metadata=None):
        outputs.append(Shown(shown, metadata or {}))

    monkeypatch.setattr(IPython.display, "display", display)
    return outputs


class Shown:
    """What is displayed, and its metadata; everything else is that of the object."""

    def __init__(self, what, metadata):
        self.what, self.metadata = what, metadata

    def __getattr__(self, name):
        return getattr(self.what, name)

    @property
    def radio(self):
        """The buttons in the column of widgets."""
        return self.what.children[0].children[0]

    @property
    def note(self):
        """What stands below the buttons."""
        return self.what.children[-1].value


@pytest.fixture
def live(monkeypatch, tmp_path):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "on")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("course.kit.learn.state.state_file", lambda: tmp_path / "learn.json")
    monkeypatch.setattr("course.kit.learn.state._unsaved", {})


def test_nobody_there_shows_the_question_and_the_outcome(shown, monkeypatch):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    learn.predict("99.rows", "How many of `10` rows?", [10, 5])
    learn.reveal("99.rows", 5)
    question, outcome = shown
    assert question.text == "Predict: How many of `10` rows?\n  ( ) 10\n  ( ) 5"
    assert "<code>10</code>" in question.html
    assert (
        "<details" in outcome.html and " open" not in outcome.html.partition("<summary>")[0].rpartition("<details")[2]
    )
    assert outcome.html.endswith("</summary><div>5</div></details>")
    warning, _, answer = outcome.text.partition(": ")
    assert "after you have answered" in warning and answer == "5"


def test_a_key_alone_asks_what_is_kept_for_it(shown, monkeypatch):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    learn.predict("00.rows")
    (card,) = shown
    assert card.text == question_card(find_question("00.rows")).text


def test_what_stands_below_the_buttons_is_true(shown, live, monkeypatch, tmp_path):
    learn.predict("99.rows", "How many rows?", [10, 5])
    shown[1].radio.value = "10"
    assert "Kept: 10" in shown[1].note
    monkeypatch.setattr("course.kit.learn.state.state_file", lambda: tmp_path / "learn.json" / "below a file.json")
    shown[1].radio.value = "5"
    assert "Kept" not in shown[1].note and "Yours until this kernel ends: 5" in shown[1].note


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("5", "You predicted 5, and so it is."),
        ("10", "You predicted 10; the run gave 5. Can you explain the difference?"),
    ],
)
def test_a_recorded_answer_is_compared(shown, live, chosen, words):
    learn.predict("99.rows", "How many rows?", [10, 5])
    radio = shown[1].radio
    assert radio.value is None
    radio.value = chosen
    assert recall("predictions", "99.rows") == chosen
    assert chosen in shown[1].children[-1].value
    learn.reveal("99.rows", 5)
    assert shown[2].text == f"Outcome: {words}" and "<details" not in shown[2].html


def test_an_answer_is_remembered_until_its_choice_disappears(shown, live):
    learn.predict("99.rows", "How many rows?", [10, 5])
    shown[1].radio.value = "10"
    learn.predict("99.rows", "How many rows?", [10, 5])
    assert shown[3].radio.value == "10"
    learn.predict("99.rows", "How many rows?", [5, 3])
    assert shown[5].radio.value is None


def test_what_a_file_keeps_is_the_same_whoever_answered(shown, live, monkeypatch):
    learn.predict("99.rows", "How many rows?", [10, 5])
    shown[1].radio.value = "10"
    learn.reveal("99.rows", 5)
    (question, buttons, told), shown[:] = list(shown), []
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    learn.predict("99.rows", "How many rows?", [10, 5])
    learn.reveal("99.rows", 5)
    assert question._repr_mimebundle_() == shown[0]._repr_mimebundle_() and not question.metadata
    assert buttons.metadata == {"frcnn_lite": {"still": None}}
    assert told.metadata == {"frcnn_lite": {"still": shown[1]._repr_mimebundle_()}} and not shown[1].metadata


def test_run_all_without_an_answer_goes_on(shown, live):
    learn.predict("99.rows", "How many rows?", [10, 5])
    learn.reveal("99.rows", 5)
    assert shown[2].html == outcome_card("5").html and "<details" in shown[2].html


def test_an_outcome_outside_the_choices_fails(shown, monkeypatch):
    monkeypatch.setenv("FRCNN_LITE_LEARN", "off")
    learn.predict("99.rows", "How many rows?", [10, 5])
    with pytest.raises(ValueError, match="the run gave '7', which is none of the choices"):
        learn.reveal("99.rows", 7)


def test_reveal_before_predict_says_what_to_run():
    with pytest.raises(KeyError, match="was not asked yet"):
        learn.reveal("99.never", 1)


@pytest.mark.parametrize(
    ("key", "words"), [("00.never", "notebook 00 has 00.rows, "), ("99.rows", "no questions of notebook '99'")]
)
def test_a_key_without_a_question_says_which_there_are(key, words):
    with pytest.raises(KeyError, match=words):
        learn.predict(key)


@pytest.mark.parametrize("choices", [[], [1], [1, "1"]])
def test_a_question_needs_two_different_choices(choices):
    with pytest.raises(ValueError, match="two or more different"):
        learn.predict("99.rows", "How many?", choices)
