"""A rank that leaves a group of NCCL's while others wait: they hear which one, and how, or wait until the time-out."""

import sys
from collections.abc import Callable

import pytest
import torch.multiprocessing as mp
import vgpu_leaving
from vgpu_group import START, free_port, preload

import vgpu

KILLED = pytest.param("killed", marks=pytest.mark.skipif(sys.platform == "win32", reason="the system has no SIGKILL"))
HOW = {
    "returned": "it returned, and its process has ended",
    "raised": "it raised ValueError: the loss is nan",
    "destroyed": "it has destroyed its group",
    "killed": "its process has ended without a word: it was killed, or called os._exit",
    "ended": "it ended with status 3",
}


def heard(work: Callable, how: str, ranks: int = 2, **environment: str) -> list[tuple[str, str, float]]:
    """What the ranks but rank 1 say of the time after rank 1 has left."""
    port, context = free_port(), mp.get_context(START)
    preload()
    wires, children = [], []
    with vgpu.virtual_gpus(ranks):
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            given = (rank, ranks, port, environment, work, how, theirs)
            children.append(context.Process(target=vgpu_leaving.live, args=given))
            children[-1].start()
            theirs.close()
            wires.append(ours)
    try:
        return [wire.recv() for rank, wire in enumerate(wires) if rank != 1]
    finally:
        for child in children:
            child.kill()
            child.join()


@pytest.mark.parametrize("how", ["returned", "raised", "destroyed", "ended", KILLED])
def test_who_waits_hears_which_rank_has_left_and_how(how):
    told = heard(vgpu_leaving.in_pairs, how, ranks=1 + len(vgpu_leaving.WAITS))
    for rank, kind, (name, words, _) in zip((0, 2, 3, 4, 5, 6), vgpu_leaving.WAITS, told, strict=True):
        where = "barrier" if kind == "barrier" else f"{kind.removeprefix('i')} of (3,) float32"
        assert name == "RankLeft" and words.startswith(f"simulated only: rank {rank} waits in {where}")
        assert "after 600 s" in words and words.endswith(f"rank 1 has left: {HOW[how]}")


def test_ranks_that_end_because_of_the_first_are_not_named():
    for name, words, _ in heard(vgpu_leaving.in_backward, "raised", ranks=4):
        assert name == "RankLeft" and words.endswith(f"rank 1 has left: {HOW['raised']}")
        assert "waits in allreduce of (4,) float32" in words and words.count("has left") == 1


def test_a_lesson_may_see_the_hang():
    ((name, words, seconds),) = heard(vgpu_leaving.until_the_timeout, "raised", VGPUS_LEFT="wait")
    assert name == "RankLeft" and "after 4 s" in words and seconds >= 4


@pytest.mark.parametrize(
    ("how", "other"),
    [("awake", "rank 1 has left: it gave up after "), ("asleep", "no rank has left: the others do something else")],
)
def test_ranks_that_wait_for_each_other_learn_after_the_timeout_where_each_was(how, other):
    ((name, words, _),) = heard(vgpu_leaving.both_receive, how)
    assert name == "RankLeft" and words.startswith("simulated only: rank 0 waits in recv of (3,) float32")
    assert "after 4 s (the time-out" in words and other in words
    assert how == "asleep" or "s in recv of (3,) float32, at vgpu_leaving.py:" in words.splitlines()[-1]


def test_a_message_that_is_too_long_is_an_error_of_both_ranks():
    """Of the rank that comes second; the first hears that this one has left, and why."""
    ((_, words, _),) = heard(vgpu_leaving.five_for_three, "")
    assert "simulated only: a rank sends what the other does not expect" in words


def test_a_group_of_gloo_keeps_gloos_words():
    ((name, words, _),) = heard(vgpu_leaving.over_gloo, "raised")
    assert name == "RuntimeError" and "by peer" in words and "simulated only" not in words


def test_a_wrong_wish_is_an_error_when_the_group_is_made():
    ((name, words, _),) = heard(vgpu_leaving.makes_a_group, "returned", VGPUS_LEFT="hang")
    assert (name, words) == ("ValueError", "VGPUS_LEFT must be 'raise' or 'wait', it is 'hang'")
