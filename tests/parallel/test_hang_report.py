"""The diagnosis of a hang, from positions that are made up."""

import pickle

import pytest

from frcnn_lite.parallel.hang_report import CollectiveHang, Entered, Position, diagnose

WORLD = (0, 1, 2)


def entered(number, name="all_reduce", tensor="(3,) float32", group=WORLD, step=None):
    return Entered(number, name, step, tensor, f"train.py:{number}", group)


def waiting(rank, *calls, step=None):
    return Position(rank, "waiting", step, calls[-1], calls, "train.py:9")


def test_the_rank_that_left_is_waited_for():
    calls = [entered(number, step=number) for number in (1, 2, 3, 4)]
    left = Position(1, "left", 3, None, tuple(calls[:3]))
    words = diagnose([waiting(0, *calls), left, waiting(2, *calls)])
    first, *rest = words.splitlines()
    assert first == "rank 0 waits in all_reduce #4 of step 4 for rank 1"
    assert rest[0] == "  rank 0 waits in all_reduce #4 of (3,) float32, step 4, at train.py:4"
    assert rest[1].startswith("  rank 1 left after step 3; its last collective was all_reduce #3")


def test_a_rank_that_goes_on_elsewhere_is_told_with_its_place():
    positions = [waiting(0, entered(1)), Position(1, "running", 7, None, (), "evaluate.py:20")]
    assert "rank 1 is in step 7, at evaluate.py:20; it has entered no collective" in diagnose(positions)


def test_a_rank_that_left_by_an_exception_says_which():
    words = str(Position(1, "left", 3, why="FloatingPointError"))
    assert words == "rank 1 left in step 3 with FloatingPointError; it has entered no collective"
    assert str(Position(1, "left")) == "rank 1 left; it has entered no collective"


def test_a_rank_without_an_answer_has_ended():
    words = diagnose([waiting(0, entered(1)), Position(1, "silent")])
    assert "waits in all_reduce #1 for rank 1" in words and "rank 1 does not answer" in words


@pytest.mark.parametrize("other", [entered(2, "broadcast"), entered(2, tensor="(4,) float32")])
def test_different_collectives_under_one_number_are_the_cause(other):
    words = diagnose([waiting(0, entered(1), entered(2)), waiting(1, entered(1), other)])
    assert words.startswith("rank 0 and rank 1 entered different collectives as #2: all_reduce of (3,) float32")


def test_the_first_call_from_different_lines_is_told():
    """What a collective on rank 0 only looks like: the same calls, of the same shapes, one apart."""
    log, train = (Entered(1, "all_reduce", None, "() float32", f"train.py:{line}", WORLD) for line in (5, 8))
    second = Entered(2, "all_reduce", None, "() float32", "train.py:8", WORLD)
    words = diagnose([waiting(0, log, second), Position(1, "left", None, None, (train,))])
    assert words.splitlines()[-1] == "  ranks parted at #1: all_reduce at train.py:5, all_reduce at train.py:8"
    assert "parted" not in diagnose([waiting(0, train, second), Position(1, "left", None, None, (train,))])


def test_who_waits_in_an_earlier_collective_is_the_victim_and_who_is_ahead_is_not_blamed():
    ahead = [entered(1), entered(2)]
    words = diagnose([waiting(0, *ahead), waiting(1, entered(1)), Position(2, "silent")])
    assert words.startswith("rank 1 waits in all_reduce #1 for rank 2")


def test_ranks_outside_the_group_are_not_waited_for():
    call = entered(1, group=(0, 2))
    words = diagnose([waiting(0, call), Position(1, "running"), Position(2, "left")])
    assert words.startswith("rank 0 waits in all_reduce #1 for rank 2")


def test_all_there_and_still_no_end_points_at_the_hardware():
    words = diagnose([waiting(rank, entered(1)) for rank in WORLD])
    assert "all ranks of the group are in all_reduce #1" in words and "network" in words


def test_nobody_waits():
    assert diagnose([Position(0, "left")]).startswith("no rank waits")
    with pytest.raises(ValueError, match="positions is empty"):
        diagnose([])


def test_positions_travel_as_json_and_the_error_by_pickle():
    position = waiting(0, entered(1), entered(2, step=5), step=5)
    assert Position.from_json(position.to_json()) == position
    assert Position.from_json(Position(2, "silent").to_json()) == Position(2, "silent")
    hang = CollectiveHang([position])
    copy = pickle.loads(pickle.dumps(hang))
    assert copy.positions == hang.positions and str(copy) == str(hang)
