"""Ranks of a checker: threads where the GPUs are virtual, with the errors of rank cells."""

import threading

import pytest
import torch
from torch import distributed

import vgpu
from course.kit.rank_threads import call_on_ranks, is_apart
from course.kit.ranks import RanksFailed


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def test_each_rank_is_a_thread_with_arguments_of_its_own():
    def appended(own):
        own.append(distributed.get_rank())
        return own, threading.current_thread() is threading.main_thread()

    given = [7]
    assert call_on_ranks(2, appended, given, limit=5) == [([7, 0], False), ([7, 1], False)]
    assert given == [7]


def test_an_error_names_its_rank():
    def fails(_):
        if distributed.get_rank() == 1:
            raise ValueError("of this rank")

    with pytest.raises(RanksFailed, match=r"^rank 1 raised ValueError: of this rank$") as failed:
        call_on_ranks(2, fails, None, limit=5)
    assert failed.value.rank == 1 and not is_apart(failed.value)


def test_ranks_that_wait_for_each_other_are_apart():
    def waits(_):
        if distributed.get_rank() == 0:
            distributed.all_reduce(torch.ones(1).cuda())

    with pytest.raises(RanksFailed, match=r"^rank 0 waited in all_reduce") as failed:
        call_on_ranks(2, waits, None, limit=5)
    assert failed.value.rank is None and is_apart(failed.value)
