"""What several exercises of this lesson try answers on."""

from typing import Any

import torch


def close(given: Any, expected: Any) -> bool:
    """Equal within the rounding of a float32: numbers, lists of them, and tensors."""
    mine, right = (torch.as_tensor(value, dtype=torch.float64, device="cpu") for value in (given, expected))
    return mine.shape == right.shape and torch.allclose(mine, right, rtol=1e-6, atol=1e-9, equal_nan=True)
