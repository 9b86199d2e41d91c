"""Stacks and flight records are read from the files that the ranks leave; notebook 08 holds the real ones."""

import faulthandler
import pickle

import pytest

from course.kit.ranks import RanksFailed
from course.lessons.nb08.stuck import Recorded, recorded, stack, who_waits
from frcnn_lite.parallel.watchdog import Entered, Position


def test_a_stack_ends_at_the_function_that_is_asked_for(tmp_path):
    def inner():
        with file.open("w") as opened:
            faulthandler.dump_traceback(file=opened)

    def outer():
        inner()

    file = tmp_path / "stacks"
    outer()
    assert stack(file, "outer") == "inner (test_stuck.py) <- outer (test_stuck.py)"
    with pytest.raises(ValueError, match="runs 'nobody'"):
        stack(file, "nobody")


def test_records_name_the_line_of_the_cell(tmp_path):
    frames = [{"filename": "/torch/all.py", "line": 9}, {"filename": "In[3]", "line": 4}]
    entry = {"collective_seq_id": 2, "profiling_name": "gloo:all_reduce", "frames": frames, "retired": False}
    file = tmp_path / "record"
    file.write_bytes(pickle.dumps({"entries": [entry]}))
    assert recorded(file) == [Recorded(2, "gloo:all_reduce", 4, False)]


def test_who_waits_is_the_rank_in_a_collective_or_nobody():
    call = Entered(4, "all_reduce", None, "(1,) float32", "In[3]:5", (0, 1))
    positions = (Position(1, "left"), Position(0, "waiting", call=call))
    assert who_waits(RanksFailed("a hang", positions=positions)) == "rank 0, in all_reduce #4"
    assert who_waits(RanksFailed("rank 1 raised", 1)) == who_waits([None, None]) == "nobody"
