"""Backward: refuse what the real engine refuses, in its words. Everything else of autograd runs unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from vgpu.base.patches import Patches
from vgpu.machine import devices


def install(patches: Patches) -> None:
    """Check the gradients a backward pass starts from, and those that a Python Function returns: the engine trusts
    tensor subclasses and would check neither."""
    patches.set(BackwardCFunction, "apply", _checked(BackwardCFunction.apply))
    run = torch.autograd._engine_run_backward  # type: ignore[attr-defined]

    def _engine_run_backward(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
        for i, (output, grad) in enumerate(zip(outputs, grads, strict=True)):
            if isinstance(output, torch.Tensor):
                _check(grad, output.device, i)
        try:
            return run(outputs, grads, *args, **kwargs)
        except RuntimeError as error:
            text = devices.public_text(str(error))
            if text == str(error):
                raise
            raise type(error)(text) from error

    patches.set(torch.autograd, "_engine_run_backward", _engine_run_backward)


def _check(grad: Any, wanted: torch.device, index: int, whose: str = "") -> None:
    """Refuse a gradient on another device than `wanted`; a single number is moved there, as everywhere."""
    if isinstance(grad, torch.Tensor) and grad.dim() and grad.device != wanted:
        raise RuntimeError(f"{whose}invalid gradient at index {index} - expected device {wanted} but got {grad.device}")


def _checked(apply: Callable[..., Any]) -> Callable[..., Any]:
    def checked_apply(ctx: Any, *grads: Any) -> Any:
        returned = apply(ctx, *grads)
        given = returned if isinstance(returned, tuple) else (returned,)
        needed = [grad for grad, needs in zip(given, ctx.needs_input_grad, strict=False) if needs]
        edges = [(i, node._input_metadata[k].device) for i, (node, k) in enumerate(ctx.next_functions) if node]
        for grad, (i, place) in zip(needed, edges, strict=False):
            wanted = devices.public(place)
            _check(grad, wanted, i, f"Function {type(ctx).__name__} returned an ")
        return returned

    return checked_apply
