"""The picture of the four calls is green where the notebook's function is the one that runs."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.kit.figures.palette import RIGHT_COLOUR
from course.kit.learn.by_key import find_exercise
from course.kit.learn.exercise import TODO
from course.lessons.nb02.four_calls import DOES, complete

pytestmark = pytest.mark.virtual_gpus(2)


def unsolved(*given):
    return TODO


def green_boxes(figure):
    return [box for box in ElementTree.fromstring(figure.markup).iter() if box.get("stroke") == RIGHT_COLOUR]


def test_nothing_is_written_at_first():
    calls = complete(**dict.fromkeys(DOES, unsolved))
    assert calls.own == () and green_boxes(calls.figure) == []
    assert [getattr(calls, name) for name in DOES] == [find_exercise(f"02.{name}").reference for name in DOES]
    assert "0 of its 4 calls are written" in calls.figure.title


def test_what_is_solved_runs_and_is_green():
    def own(*given):
        return find_exercise("02.replicate").reference(*given)

    calls = complete(**dict.fromkeys(DOES, unsolved) | {"replicate": own})
    assert calls.own == ("replicate",) and calls.replicate is own and len(green_boxes(calls.figure)) == 1
    assert "replicate copies the weights: written; parallel_apply runs the copies: not yet written" in calls.figure.text


def test_all_of_them():
    calls = complete(**{name: find_exercise(f"02.{name}").reference for name in DOES})
    assert calls.own == tuple(DOES) and len(green_boxes(calls.figure)) == 4
