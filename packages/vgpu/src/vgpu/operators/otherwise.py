"""Functions of PyTorch that take another way on the CPU than on CUDA, where a virtual tensor is to take CUDA's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import contexts, waiting
from vgpu.tensors.tensor import is_virtual


def install(patches: Patches) -> None:
    """Replace the functions under each of their names."""
    patched = _one_hot(torch._C._nn.one_hot)  # type: ignore[attr-defined]
    for owner in (torch._C._nn, torch.nn.functional):
        patches.operator(owner, "one_hot", patched)
    patches.operator(torch, "ctc_loss", _ctc_loss(torch.ctc_loss))
    for name in ("quantile", "nanquantile"):
        patches.operator(torch, name, _without_waits(getattr(torch, name)))
        patches.set(torch.Tensor, name, _without_waits(getattr(torch.Tensor, name)))


def _one_hot(plain: Callable) -> Callable:
    @functools.wraps(plain)
    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        """On CUDA the largest class is looked for only where their number is asked for; `scatter_` meets the others."""
        if not (is_virtual(tensor) and tensor.dtype is torch.int64 and tensor.numel()):
            return plain(tensor, num_classes)
        if num_classes == -1:
            num_classes = int(tensor.max().item()) + 1
        elif num_classes < 1:
            raise RuntimeError("num_classes should be positive")
        found = tensor.new_zeros((*tensor.shape, num_classes))
        return found.scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _ctc_loss(plain: Callable) -> Callable:
    mean = 1  # of PyTorch's numbers for reductions

    @functools.wraps(plain)
    def ctc_loss(
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = mean,
        zero_infinity: bool = False,
    ) -> torch.Tensor:
        """C++ divides by the lengths, which it makes where it takes the loss to be: on the CPU."""
        if not is_virtual(log_probs) or reduction != mean:
            return plain(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        losses = plain(log_probs, targets, input_lengths, target_lengths, blank, 0, zero_infinity)
        lengths = torch.as_tensor(target_lengths).to(losses.device, losses.dtype)
        return (losses / lengths.clamp_min(1)).mean()

    return ctc_loss


def _without_waits(plain: Callable) -> Callable:
    """The CPU's function reads back whether its arguments are right, which CUDA's leaves to the caller."""

    @functools.wraps(plain)
    def unread(*args: Any, **kwargs: Any) -> Any:
        if not contexts.watched:
            return plain(*args, **kwargs)
        with waiting.unheard():
            return plain(*args, **kwargs)

    return unread
