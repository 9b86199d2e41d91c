"""The matrix of a convolution is torch's, and every position of the window can be drawn."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course.kit import figures
from course.lessons.nb23.conv_matrix import _Steps, conv_matrix
from course.lessons.nb23.unfold_conv import output_size


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1)])
def test_matrix_of_the_figure_is_torchs_unfold(stride, padding, dilation):
    image, filters = np.asarray(figures.cast()[3], dtype=float), np.arange(9.0).reshape(3, 3)
    steps = _Steps(image, filters, stride, padding, dilation)
    tensor = torch.tensor(image)[None, None]
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    assert np.allclose(steps.matrix.T, F.unfold(tensor, 3, **settings)[0].numpy())
    assert np.allclose(steps.output, F.conv2d(tensor, torch.tensor(filters)[None, None], **settings)[0, 0].numpy())


def test_every_position_of_the_window_can_be_drawn():
    image, filters = figures.cast()[0], np.ones((3, 3))
    rows, columns = output_size((8, 8), 3, 2, 1)
    drawn = [conv_matrix(image, filters, k, stride=2, padding=1) for k in range(rows * columns)]
    assert len({figure.markup for figure in drawn}) == rows * columns
    assert "row 5 of the 16 x 9 matrix" in drawn[5].description
    with pytest.raises(ValueError, match="positions 0 to 15"):
        conv_matrix(image, filters, 16, stride=2, padding=1)
    with pytest.raises(ValueError, match="do not fit"):
        conv_matrix(image, filters, 0, dilation=4)
