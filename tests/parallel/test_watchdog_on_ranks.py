"""The watchdog in two and three ranks: it changes no gradient, and ends what hangs with the diagnosis.

The ranks are copies of one process that has imported torch, where the system has them; test_launch.py spawns some.
"""

import functools
import multiprocessing
import sys

import pytest
import torch
import watchdog_workers as workers

from frcnn_lite.parallel import launch
from frcnn_lite.parallel.launch import RankFailed
from frcnn_lite.parallel.watchdog import HUNG

multiprocessing.set_forkserver_preload(["torch"])
run_ranks = functools.partial(launch.run_ranks, start_method="forkserver" if sys.platform == "linux" else "spawn")


def test_watching_changes_no_gradient_and_names_the_parameters():
    for found, names, gathered, counts in run_ranks(workers.gradients_watched_and_not, 2, None):
        never, watched, after = found
        for one, two, three in zip(never, watched, after, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-10, atol=0)
            torch.testing.assert_close(one, three, rtol=1e-10, atol=0)
        assert [set(name.partition("(")[2].rstrip(")").split(", ")) for name in names] == [
            {"0.weight", "0.bias", "1.weight", "1.bias"}
        ]
        assert gathered == [0, 1] and counts == 3  # an object is gathered in two collectives, then one all_reduce


def test_a_wait_in_native_code_ends_the_process_with_the_diagnosis():
    with pytest.raises(RankFailed) as caught:
        run_ranks(workers.unwatched_backward, 2)
    failure = caught.value.failures[0]
    assert failure.reason.startswith(f"exited with code {HUNG}")
    assert "CollectiveHang: rank 0 waits in backward #1 of step 4 for rank 1" in failure.details
    assert "rank 1 left after step 3" in failure.details


def test_collectives_are_counted_for_each_group():
    with pytest.raises(RankFailed) as caught:
        run_ranks(workers.subgroup_hang, 3)
    assert caught.value.rank == 0
    assert caught.value.reason == "raised CollectiveHang: rank 0 waits in all_reduce #2 for rank 2"
