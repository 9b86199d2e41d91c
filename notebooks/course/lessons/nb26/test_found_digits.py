"""The figure of notebook 26, the net that it opens with, and what it was made of."""

import pytest
import torch

from course.kit import post_002
from course.lessons.nb26.digit_answers import SIZES, digit_pictures, features, trained_net
from course.lessons.nb26.found_digits import found_digits


def test_the_figure_says_all_its_numbers():
    figure = found_digits(((0, 0), (0, 1)), ((3, 4), (3, 0)), "two digits")
    assert (
        figure.description == "0: group 0, found 3, then group 0, found 3; 1: group 0, found 4, then group 1, found 0."
    )
    with pytest.raises(ValueError, match="equally long"):
        found_digits(((0, 0), (0,)), ((3, 4), (3, 0)), "two digits")


def test_the_trained_net_finds_digits():
    head, pooled, present = trained_net()
    assert pooled.shape == (300, len(SIZES), 32) and present.sum(dim=1).min() >= 1
    with torch.no_grad():
        hits = head(pooled) > 0
        same = post_002.ClassHead.from_serial(head)(pooled) > 0
    assert torch.equal(hits, same)
    right, found = int((hits & (present > 0)).sum()), int(hits.sum())
    assert right > found / 2 > 60


def test_pictures_and_features():
    images, present = digit_pictures("test", 4)
    assert images.shape == (4, 1, 32, 32) and present.shape == (4, 10)
    assert features(images).shape == (4, 150, 3, 3)
