"""When a sharded net has which layer whole, noted while a step runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor


@contextmanager
def watched(net: nn.Sequential) -> Iterator[list[tuple[str, list[bool]]]]:
    """Note (moment, whether each layer is whole) at each layer's forward and backward, and at the end of the forward.

    A weight is a plain tensor while its layer is whole. The input of the net has to require a gradient, because a
    layer's backward is noted when that of its input is known.
    """
    moments: list[tuple[str, list[bool]]] = []

    def note(moment: str) -> None:
        moments.append((moment, [not isinstance(layer.weight, DTensor) for layer in net]))

    def in_forward(k: int, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        note(f"forward {k}")
        inputs[0].register_hook(lambda gradient: note(f"backward {k}"))

    def at_end(*_: Any) -> None:
        note("loss")

    # Before FSDP's own hook, which frees a layer; that of the net comes after all of them.
    hooks = [layer.register_forward_hook(partial(in_forward, k), prepend=True) for k, layer in enumerate(net)]
    hooks.append(net.register_forward_hook(at_end))
    try:
        yield moments
    finally:
        for hook in hooks:
            hook.remove()
