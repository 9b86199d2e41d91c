"""The figure of a hang says who came, who waits and who never came."""

from dataclasses import replace

import pytest

from course.lessons.nb08.collective_lanes import collective_lanes
from frcnn_lite.parallel.watchdog import Entered, Position


def calls(*names, group=(0, 1)):
    return tuple(
        Entered(number, name, number, "(3,) float32", "train.py:1", group) for number, name in enumerate(names, 1)
    )


def test_lanes_tell_who_came_and_who_is_waited_for():
    came = calls("all_reduce", "all_reduce of gradients (weight)")
    positions = [
        Position(0, "waiting", 2, came[1], came),
        Position(1, "left", 1, None, came[:1], why="FloatingPointError"),
    ]
    figure = collective_lanes(positions, "A hang")
    assert figure.description.endswith(
        "rank 0 came through #1 all_reduce at train.py:1 and waits here; "
        "rank 1 came through #1 all_reduce at train.py:1 and left in step 1: FloatingPointError"
    )
    assert figure.markup.count("stroke-dasharray") == 1 and "#2, step 2" in figure.markup
    assert figure.markup == collective_lanes(positions, "A hang").markup


def test_collectives_of_other_groups_are_left_out():
    pair, world = calls("all_reduce"), calls("broadcast", "broadcast", "barrier", group=(0, 1, 2))
    positions = [Position(0, "waiting", None, pair[0], (*world, *pair)), Position(1, "running", None, None, world)]
    markup = collective_lanes(positions, "A hang").markup
    assert "broadcast" not in markup and "is elsewhere" in markup


def test_lines_are_shown_where_ranks_differ_in_them():
    here, there = calls("all_reduce"), tuple(replace(entry, site="train.py:7") for entry in calls("all_reduce"))
    same = [Position(0, "waiting", None, here[0], here), Position(1, "left", None, None, here)]
    differ = [same[0], Position(1, "left", None, None, there)]
    markup = collective_lanes(same, "A hang").markup
    assert ">train.py:1<" not in markup and "framed" not in markup
    markup = collective_lanes(differ, "A hang").markup
    assert ">train.py:1<" in markup and ">train.py:7<" in markup and "framed" in markup


def test_no_hang_has_no_figure():
    with pytest.raises(ValueError, match="no rank that waits"):
        collective_lanes([Position(0, "left")], "A hang")
