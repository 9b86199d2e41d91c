import pytest

from course.lessons.nb07.rank_samples import rank_samples, repeated

PADDED = [[0, 2, 4], [1, 3, 0]]  # five samples on two ranks, as DistributedSampler deals them out


def test_the_copy_is_the_one_that_comes_later():
    assert repeated(PADDED) == {(1, 2)}
    assert repeated([[0, 2], [1]]) == set()
    assert repeated([[0, 1], [1, 2]]) == {(0, 1)}  # ranks go side by side: rank 1 saw sample 1 first


def test_the_figure_says_who_sees_what_and_what_twice():
    figure = rank_samples([PADDED, [[1, 3], [0, 2]]], ["epoch 0", "epoch 1"], "Samples")
    assert "epoch 0: rank 0: 0, 2, 4; rank 1: 1, 3, 0; shown again: 0." in figure.description
    assert figure.description.endswith("epoch 1: rank 0: 1, 3; rank 1: 0, 2.")
    assert figure.markup == rank_samples([PADDED, [[1, 3], [0, 2]]], ["epoch 0", "epoch 1"], "Samples").markup


def test_epochs_have_names_and_one_number_of_ranks():
    for epochs, names in (([], []), ([PADDED], []), ([PADDED, [[0]]], ["a", "b"])):
        with pytest.raises(ValueError, match="a name for each epoch and as many ranks in all"):
            rank_samples(epochs, names, "Samples")
