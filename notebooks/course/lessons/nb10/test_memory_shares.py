"""The memory figure keeps its parts."""

import pytest

from course.lessons.nb10.memory_shares import memory_shares


def test_memory_shares_tell_every_part():
    plans = {"DDP": {"weights": 4e6, "pictures": 9e6}, "sharded": {"weights": 2e6, "pictures": 9e6}}
    figure = memory_shares(plans, "On a GPU")
    assert "DDP: weights 4.0 MB, pictures 9.0 MB; sharded: weights 2.0 MB" in figure.description
    assert "13.0 MB" in figure.markup and "11.0 MB" in figure.markup


@pytest.mark.parametrize(
    ("plans", "words"),
    [({}, "same parts"), ({"a": {"x": 1}, "b": {"y": 1}}, "same parts"), ({"a": {"x": -1}}, "negative")],
)
def test_memory_shares_refuse_what_cannot_be_drawn(plans, words):
    with pytest.raises(ValueError, match=words):
        memory_shares(plans, "On a GPU")
