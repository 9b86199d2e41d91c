"""The figure of pooling windows agrees with torch and with the converter."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb32.adaptive_pool import adaptive_windows, fixed_window
from course.lessons.nb32.pool_windows import _adaptive, _fixed, pool_windows


def is_exact(size, output):
    try:
        fixed_window(size, output)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("size", [1, 7, 10, 13, 24])
def test_windows_are_the_converters(size):
    for output in range(1, size + 1):
        assert _adaptive(size, output) == adaptive_windows(size, output)
        exact = is_exact(size, output)
        assert (_adaptive(size, output) == _fixed(size, output)) == exact
        figure = pool_windows(size, output)
        assert ("the windows agree" in figure.title) == exact
        ElementTree.fromstring(figure.markup)


def test_figure_counts_and_refuses():
    figure = pool_windows(10, 4)
    assert figure.title == "10 cells to 4: 4 of 4 windows differ"
    assert "0 to 2, 2 to 4, 5 to 7, 7 to 9" in figure.description
    with pytest.raises(ValueError, match="got size 3 and output 4"):
        pool_windows(3, 4)
