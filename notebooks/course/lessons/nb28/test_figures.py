"""The figures of notebook 28: what the GPUs dropped, and how far a difference has gone."""

import pytest
import torch

from course.lessons.nb28.masks import masks
from course.lessons.nb28.spread import spread


def test_masks_counts_what_is_dropped_and_what_in_the_same_places():
    one, other = torch.tensor([[True, False, True]]), torch.tensor([[True, True, False]])
    assert masks([one, other], "Dropped").description == (
        "cuda:0 drops 2 of 3, cuda:1 drops 2 of 3; the first and the last both drop 1 in the same places."
    )


def test_masks_wants_tables_of_one_shape():
    with pytest.raises(ValueError, match="tables of one shape"):
        masks([torch.ones(2, 2), torch.ones(2, 3)], "Dropped")


def test_spread_names_each_share():
    figure = spread({0: [0.0, 0.5], 10: [1.0, 0.25]}, ["a", "b"], "Spread")
    assert figure.description == "Weights that differ: after 0 steps a 0%, b 50%; after 10 steps a 100%, b 25%."


@pytest.mark.parametrize("row", [[0.5], [0.5, 1.5]])
def test_spread_wants_a_share_for_each_layer(row):
    with pytest.raises(ValueError, match="must be 2 numbers from 0 to 1"):
        spread({0: row}, ["a", "b"], "Spread")
