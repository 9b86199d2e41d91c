"""Statements in the prose of notebook 31 that no output shows, run again."""

import torch
from told import says
from torch import nn

from course.lessons.nb31.puzzles.merge import cut, merge


def test_eleven_ranks_are_sorted_as_text():
    assert sorted(f"rank_{k}" for k in range(10)) == [f"rank_{k}" for k in range(10)]
    assert sorted(f"rank_{k}" for k in range(11))[:3] == ["rank_0", "rank_1", "rank_10"]
    assert says("31", "as text, `rank_10` comes before `rank_2`")


def test_shards_of_four_make_shards_of_two():
    whole, plan = {"qkv": torch.rand(24, 4), "up": torch.rand(8, 4)}, {"qkv": "qkv", "up": 0}
    four, two = cut(whole, plan, 4), cut(whole, plan, 2)
    for rank in range(2):
        joined = merge(four[2 * rank : 2 * rank + 2], plan)
        assert all(torch.equal(joined[name], two[rank][name]) for name in plan)
    assert says("31", "Ranks 0 and 1 of the four make rank 0 of the two: join two shards as above, q, k and v apart.")


def test_a_momentum_of_pytorch_is_the_share_of_the_new_mean():
    norm = nn.BatchNorm1d(1, momentum=0.9)
    norm(torch.tensor([[10.0], [20.0]]))
    assert norm.running_mean.item() == 0.9 * 15
    assert says("31", "each batch replaces nine tenths of the statistics")
