"""The digits that notebook 27 trains on, as rows of numbers."""

import torch
from torch import Tensor

from frcnn_lite.data.digits import read_digits


def digits() -> tuple[Tensor, Tensor]:
    """All 1,797 digits: pixels (1797, 64) from 0 to 1, and labels (1797,)."""
    pixels, labels = (torch.from_numpy(array) for array in read_digits())
    return pixels.flatten(1).float() / 16, labels
