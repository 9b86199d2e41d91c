"""What several exercises of this lesson try answers on."""

import torch
from torch import Tensor


def same_tensor(given: object, expected: Tensor) -> bool:
    """Equal values of the same type on the same device, with a graph where the right answer has one."""
    return (
        isinstance(given, Tensor)
        and (given.device, given.dtype) == (expected.device, expected.dtype)
        and torch.equal(given, expected)
        and (expected.grad_fn is None or given.grad_fn is not None)
    )
