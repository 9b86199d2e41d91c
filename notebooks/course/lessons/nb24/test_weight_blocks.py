"""The figure of notebook 24: which blocks of a weight one GPU can multiply alone."""

import pytest
import torch

from course.lessons.nb24.weight_blocks import weight_blocks


def test_blocks_are_counted_by_the_gpus_of_their_channels():
    diagonal = torch.block_diag(*[torch.ones(2, 3)] * 4)[..., None, None]
    figure = weight_blocks({"grouped": diagonal, "dense": torch.ones(8, 12, 1, 1)}, 4, "a weight")
    assert "grouped: 4 blocks on one GPU, 0 between two GPUs" in figure.description
    assert "dense: 8 blocks on one GPU, 8 between two GPUs" in figure.description


def test_a_block_with_one_number_is_used():
    weight = torch.zeros(4, 4, 3, 3)
    weight[0, 3, 1, 1] = -1
    assert "w: 0 blocks on one GPU, 1 between two GPUs" in weight_blocks({"w": weight}, 4, "a weight").description


@pytest.mark.parametrize(
    ("weights", "blocks"), [({}, 4), ({"w": torch.ones(6, 6, 1, 1)}, 3), ({"w": torch.ones(6, 6, 1, 1)}, 4)]
)
def test_what_cannot_be_divided_is_refused(weights, blocks):
    with pytest.raises(ValueError, match="divide"):
        weight_blocks(weights, blocks, "a weight")
