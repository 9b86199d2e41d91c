"""The timetable of notebook 36, what a stage keeps, and the figure."""

import itertools

import pytest
from told import cell, says

from course.lessons.nb36.pipeline_slots import pipeline_slots
from course.lessons.nb36.puzzles.one_forward_one_backward import one_forward_one_backward

NAMES = {
    "pipeline_slots": pipeline_slots,
    "itertools": itertools,
    "ranks": lambda count: lambda function: function,
}  # the cell draws, too
exec(compile(cell("36", "def timetable"), "36", "exec"), NAMES)
exec(compile(cell("36", "def held"), "36", "exec"), NAMES)
timetable, held = NAMES["timetable"], NAMES["held"]


def idle(table):
    return sum(slot is None for stage in table for slot in stage)


@pytest.mark.parametrize(("stages", "batches"), [(1, 3), (2, 1), (4, 8), (3, 2), (4, 28)])
def test_both_orders_wait_as_long_as_the_formula_says(stages, batches):
    gpipe = [[(kind, k) for kind in "FB" for k in range(batches)]] * stages
    by_turns = [one_forward_one_backward(stage, stages, batches) for stage in range(stages)]
    for orders in (gpipe, by_turns):
        table = timetable(orders)
        assert idle(table) / (stages * len(table[0])) == pytest.approx((stages - 1) / (batches + stages - 1))
        assert [[slot for slot in row if slot] for row in table] == [list(order) for order in orders]
    assert held(gpipe[0]) == batches and held(by_turns[0]) == min(stages, batches)


def test_stages_that_wait_for_each_other_are_an_error():
    with pytest.raises(RuntimeError, match="no stage can go on"):
        timetable([[("B", 0), ("F", 0)], [("F", 0), ("B", 0)]])


def test_a_timetable_counts_its_idle_slots():
    stages = [[("F", 0), None, None, ("B", 0)], [None, ("F", 0), ("B", 0), None]]
    drawn = pipeline_slots(stages, "two stages")
    assert "cuda:0: F0 - - B0; cuda:1: - F0 B0 -; idle: 4 of 8 slots." in drawn.description
    assert drawn.markup.count(">F0</text>") == drawn.markup.count(">B0</text>") == 2


def test_stages_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="equally many slots"):
        pipeline_slots([[None], [None, None]], "wrong")


def test_to_halve_the_bubble_takes_more_than_twice_the_micro_batches():
    four, eleven = (timetable([[(kind, k) for kind in "FB" for k in range(batches)]] * 4) for batches in (4, 11))
    assert idle(four) / (4 * len(four[0])) == pytest.approx(2 * idle(eleven) / (4 * len(eleven[0])))
    assert says("36", "that takes 2*m* + *p* - 1 of them, 11 in place of 4")
