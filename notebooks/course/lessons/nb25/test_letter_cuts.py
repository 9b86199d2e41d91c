"""The figure of two GPUs that share one loop."""

import pytest

from course.lessons.nb25.letter_cuts import letter_cuts

TENSORS = {"x": "bgi", "weight": "gio", "out": "bgo"}


def test_each_letter_says_what_is_added():
    figure = letter_cuts({"b": ["gio"], "g": [], "i": ["bgo"]}, TENSORS, "two GPUs")
    assert figure.description == (
        "b is cut: the gradient of weight is added up; g is cut: nothing is added up; i is cut: out is added up."
    )
    assert figure.markup.count(">added up<") == 2 and figure.markup.count(">stays where it is<") == 7


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        letter_cuts({}, TENSORS, "two GPUs")
