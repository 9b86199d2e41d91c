"""What several exercises of this lesson try answers on."""

from random import Random

import torch
from torch import Tensor


def generator_of(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def same_answer(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given, expected.to(given.dtype))
