"""LSTM, GRU and RNN: C++ compares the devices of what it takes for CPU tensors, so they are compared here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.operators import autocast
from vgpu.tensors.tensor import is_virtual


def install(patches: Patches) -> None:
    """Replace the functions in which the layers of `torch.nn` end."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        patches.set(torch._VF, name, _checked(getattr(torch._VF, name)), may_be_missing=True)


def _checked(plain: Callable) -> Callable:
    @functools.wraps(plain)
    def recurrent(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        packed = isinstance(args[2], (list, tuple))  # it brings the sizes of its batches first
        hidden, weights = args[1:3] if packed else args[:2]
        states = hidden if isinstance(hidden, (list, tuple)) else [hidden]
        if not any(is_virtual(t) for t in (input, *states, *weights)):
            return plain(input, *args, **kwargs)
        for kind, others in (("hidden", states), ("parameter", weights)):
            for tensor in others:
                if tensor.device != input.device:
                    raise RuntimeError(
                        f"Input and {kind} tensors are not at the same device, found input tensor at {input.device} "
                        f"and {kind} tensor at {tensor.device}"
                    )
        return autocast.in_float16(plain, input, *args, **kwargs)

    return recurrent
