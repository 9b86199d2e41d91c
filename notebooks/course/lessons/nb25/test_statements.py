"""Statements in the prose of notebook 25 that no output shows, run again."""

import torch
from told import says
from torch import nn

from course.lessons.nb25.puzzles.added import added

STACKED = "bhqd,bhkd->bhqk"


def test_the_loss_takes_the_wrong_result():
    x, weight = torch.randn(1, 64, 64), nn.Parameter(torch.randn(64, 64, 16))
    torch.einsum("gik,gkj->gij", x, weight).mean().backward()
    assert weight.grad.abs().sum() > 0
    assert says("25", "A loss that ends in `.mean()` takes the result without a word")


def test_the_letters_of_attention():
    sums = {letter: added(STACKED, letter) for letter in "bhqkd"}
    assert sums == {"b": [], "h": [], "q": [1], "k": [0], "d": ["out"]}
    assert says("25", "With q the gradient of the keys is added, with k that of the queries, and with d the scores.")


def test_two_layers_cut_along_h():
    assert added("bi,ih->bh", "h") == [0] and added("bh,ho->bo", "h") == ["out"]
    assert says("25", "The first output has h, so nothing is sent between the layers.")
