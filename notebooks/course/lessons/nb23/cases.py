"""What several exercises of this lesson try answers on."""

import torch
from torch import Tensor


def close(given: object, expected: Tensor) -> bool:
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.allclose(given, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
    )
