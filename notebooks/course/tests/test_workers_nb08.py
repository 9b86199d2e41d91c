"""Every scene of notebook 08 ends, and as the notebook says."""

import pytest

from course.workers import nb08
from frcnn_lite.parallel.launch import RankFailed, run_ranks


@pytest.fixture(scope="module")
def played():
    """Scene -> its two outcomes."""
    ranks = run_ranks(nb08.play, 2, [*nb08.SCENES], timeout=120)
    return {name: [rank[name] for rank in ranks] for name in nb08.SCENES}


@pytest.mark.parametrize(
    ("scene", "first"),
    [
        ("uneven_batches", "rank 0 waits in all_reduce of gradients (bias, weight) #4 of step 4 for rank 1"),
        ("break_on_nan", "rank 0 waits in all_reduce of gradients (bias, weight) #3 of step 3 for rank 1"),
        ("logging_on_rank_zero", "rank 0 waits in all_reduce #2 for rank 1"),
    ],
)
def test_hang_ends_in_a_diagnosis_on_the_rank_that_waits(played, scene, first):
    waits, lives_on = played[scene]
    assert waits.error.splitlines()[0] == first
    assert [position.state for position in waits.positions] == ["waiting", "left"]
    assert lives_on.error == ""


def test_join_and_an_agreed_stop_end_well(played):
    assert [outcome.result for outcome in played["joined_batches"]] == [[2.0, 2.0, 2.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    assert [outcome.result for outcome in played["agreed_stop"]] == [3, 3]


def test_a_collective_on_rank_zero_only_gives_others_a_wrong_sum_first(played):
    assert played["logging_on_rank_zero"][1].result == 20.5  # 0.5 of the log, and 20; right is 30


def test_different_collectives_are_told_apart(played):
    for outcome in played["different_collectives"]:
        assert outcome.error.startswith("rank 0 and rank 1 entered different collectives as #1")


def test_unused_parameters_hang_one_rank_and_raise_on_the_other(played):
    waits, raises = played["unused_parameters"]
    assert "waits in all_reduce of gradients" in waits.error and "of step 2 for rank 1" in waits.error
    assert "Expected to have finished reduction in the prior iteration" in raises.error
    assert "Parameters which did not receive grad for rank 1: box.bias, box.weight" in raises.error
    for repaired in ("found_unused", "always_used"):
        assert [outcome.result for outcome in played[repaired]] == [1.0, 1.0]
    assert [outcome.result for outcome in played["empty_picture"]] == [41, 41]


def test_time_out_names_no_rank_and_monitored_barrier_does(played):
    words = played["time_out"][0].error
    assert words.startswith("RuntimeError: Timed out waiting ... ms") and "ank 1" not in words
    words = played["monitored_barrier"][0].error
    assert "Rank 1 failed to pass monitoredBarrier" in words
    assert "/" not in words and "127.0" not in words


def test_sharded_ranks_hold_half_each_and_agree_with_ddp(played):
    first, second = (outcome.result for outcome in played["sharded"])
    for name in ("parameters", "gradients", "a moment of Adam"):
        assert first[name] + second[name] == pytest.approx(1.0) and 0.49 < first[name] < 0.51
    assert max(first["difference"], second["difference"]) <= 1e-10


def test_killed_rank_is_named_with_its_cause():
    with pytest.raises(RankFailed, match=r"rank 1 was killed by SIGKILL") as caught:
        run_ranks(nb08.killed, 2)
    follower = caught.value.failures.get(0)
    assert follower is None or "by peer" in follower.reason
