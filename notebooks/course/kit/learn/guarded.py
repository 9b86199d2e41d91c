"""Calls that fail where the values could be right and the way is not: inputs overwritten, or the answer looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course.kit.learn.exercise import Case


@dataclass(frozen=True)
class Guarded(Case):
    """A call that has to leave its tensors as they are, and without operators that have `forbidden` in their names.

    Raises RuntimeError otherwise, also where the values that come back are right.
    """

    forbidden: str = ""

    def call(self, function: Callable[..., Any]) -> Any:
        tensors = [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Tensor)]
        before = [tensor.clone() for tensor in tensors]
        with _Forbid(self.forbidden):
            result = super().call(function)
        if not all(map(torch.equal, tensors, before)):
            raise RuntimeError("a tensor that was handed over is not what it was before the call")
        return result


class _Forbid(TorchDispatchMode):
    """Refuses operators by a word in their names; the empty word allows all of them."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if self.word and self.word in str(func):
            raise RuntimeError(f"`{func}` was called, which does the whole work")
        return func(*args, **(kwargs or {}))
