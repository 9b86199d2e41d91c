"""The figures of notebook 23: a map that was joined from two halves, and whose pixels a window needs."""

import pytest
import torch

from course.lessons.nb23.seam import seam
from course.lessons.nb23.tap_owners import tap_owners


def test_wrong_pixels_are_counted_and_their_rows_named():
    whole = torch.arange(24.0).view(4, 6)
    joined = whole.clone()
    joined[1, 2] += 1
    joined[2, :2] += 1
    figure = seam(whole, joined, "a map")
    assert figure.description == "3 of 24 pixels of the joined map are wrong, in rows [1, 2]."
    assert ">row 1</text>" in figure.markup and ">row 0</text>" not in figure.markup


def test_maps_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="same shape"):
        seam(torch.zeros(4, 6), torch.zeros(4, 5), "a map")
    with pytest.raises(ValueError, match="rows for 2 GPUs"):
        seam(torch.zeros(3, 6), torch.zeros(3, 6), "a map")


def test_windows_of_two_gpus_are_named():
    figure = tap_owners([[0, 1, 1], [1, 1, 2], [2, 2, 0]], "windows")
    assert figure.description == "3 windows of 3 pixels; windows [1] need pixels of two GPUs."
    assert figure.markup.count("of both GPUs") == 1


def test_windows_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="same size"):
        tap_owners([[1], [1, 2]], "windows")
