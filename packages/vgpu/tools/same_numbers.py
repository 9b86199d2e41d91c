"""Seeds with which the CPU draws what a virtual GPU draws, so that what draws can be compared value by value."""

import contextlib
from collections.abc import Iterator
from unittest import mock

import torch

from vgpu.machine import rng

_manual_seed = torch.manual_seed


def _seed(number: int) -> torch.Generator:
    _manual_seed(number)
    return torch.default_generator.manual_seed(rng.twister_seed(number))


@contextlib.contextmanager
def same_numbers() -> Iterator[None]:
    """Let `torch.manual_seed` seed the CPU's generator as that of a virtual GPU begins its first draw.

    So the first draw after a seed is the same on both. Later ones differ. The samples of PyTorch's own tables seed
    inside of their operators, which is why it is this function that changes.
    """
    with mock.patch.object(torch, "manual_seed", _seed):
        yield
