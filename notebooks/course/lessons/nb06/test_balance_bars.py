"""The figure that compares how evenly GPUs are filled."""

import pytest

from course.lessons.nb06.balance_bars import balance_bars


def test_the_ratio_is_computed_from_the_peaks():
    figure = balance_bars({"before": [58_000_000, 10_000_000, 10_000_000], "after": [10_600_000, 10_000_000]}, "Peaks")
    assert "before: 5.80 (fullest 58.0 MB, emptiest 10.0 MB); after: 1.06 (" in figure.description
    assert ">5.80<" in figure.markup and ">1.06<" in figure.markup and ">1: all alike<" in figure.markup


@pytest.mark.parametrize("peaks", [{}, {"empty": []}, {"idle": [5, 0]}])
def test_what_has_no_ratio_is_refused(peaks):
    with pytest.raises(ValueError, match="positive number of bytes for each GPU"):
        balance_bars(peaks, "Peaks")
