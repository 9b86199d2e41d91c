"""Tables of an RPN's output, right ones and wrong ones, which the exercise on tests tries answers on."""

import math

import torch
from torch import Tensor


def rows_of_anchors(output: Tensor) -> Tensor:
    """(B, 5 * A, h, w) to (B, h * w * A, 5): row by row of the map, and A at each cell."""
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)


def five_groups(output: Tensor) -> Tensor:
    by_number = output.reshape(len(output), 5, -1, *output.shape[2:])
    return by_number.permute(0, 3, 4, 2, 1).reshape(len(output), -1, 5)


def by_columns(output: Tensor) -> Tensor:
    return output.permute(0, 3, 2, 1).reshape(len(output), -1, 5)


def reshape_alone(output: Tensor) -> Tensor:
    return output.reshape(len(output), -1, 5)


def by_anchors(output: Tensor) -> Tensor:
    by_anchor = output.reshape(len(output), -1, 5, *output.shape[2:])
    return by_anchor.permute(0, 1, 3, 4, 2).reshape(len(output), -1, 5)


def counting(*shape: int) -> Tensor:
    """An output in which every number is a different one, so that it tells where it stands."""
    return torch.arange(math.prod(shape)).view(shape)
