"""What several exercises of this lesson try answers on."""

from typing import Any

import torch
from torch import Tensor


def same_values(given: Any, expected: Any) -> bool:
    """The same structure; tensors with equal values of the same type on the same device."""
    if isinstance(expected, Tensor):
        kinds = (expected.device, expected.dtype)
        return isinstance(given, Tensor) and (given.device, given.dtype) == kinds and torch.equal(given, expected)
    if isinstance(expected, dict):
        return list(given) == list(expected) and all(same_values(given[key], expected[key]) for key in expected)
    return len(given) == len(expected) and all(map(same_values, given, expected))


def same_outputs(given: Any, expected: Any) -> bool:
    """The same values, and the same way back: a gradient arrives at the same weights."""
    return same_values(given, expected) and _ways_back(given) == _ways_back(expected)


def _ways_back(joined: Any) -> list[set[int]]:
    """For each tensor, the weights that its graph leads to."""
    if isinstance(joined, Tensor):
        # A view of a weight that is made under `no_grad` asks for a gradient, and leads nowhere.
        is_weight = joined.requires_grad and joined.grad_fn is None and joined._base is None
        return [{id(joined)} if is_weight else _weights_of(joined.grad_fn)]
    parts = joined.values() if isinstance(joined, dict) else joined
    return [weights for part in parts for weights in _ways_back(part)]


def _weights_of(step: Any) -> set[int]:
    """The weights that backward reaches from this step of a graph."""
    if step is None:
        return set()
    reached = {id(step.variable)} if hasattr(step, "variable") else set()
    return reached.union(*(_weights_of(before) for before, _ in step.next_functions))
