"""Backward: refuse what the real engine refuses, in its words. Everything else of autograd runs unchanged."""

from __future__ import annotations

from typing import Any

import torch

from frcnn_lite.vgpu import errors
from frcnn_lite.vgpu.patches import Patches


def install(patches: Patches) -> None:
    """Check the gradients a backward pass starts from; the engine trusts tensor subclasses and would not."""
    run = torch.autograd._engine_run_backward  # type: ignore[attr-defined]

    def _engine_run_backward(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
        for i, (output, grad) in enumerate(zip(outputs, grads, strict=True)):
            if isinstance(output, torch.Tensor) and grad is not None and grad.device != output.device and grad.dim():
                raise RuntimeError(
                    f"invalid gradient at index {i} - expected device {output.device} but got {grad.device}"
                )
        try:
            return run(outputs, grads, *args, **kwargs)
        except RuntimeError as error:
            text = errors.public_text(str(error))
            if text == str(error):
                raise
            raise type(error)(text) from error

    patches.set(torch.autograd, "_engine_run_backward", _engine_run_backward)
