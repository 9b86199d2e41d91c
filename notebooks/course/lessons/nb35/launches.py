"""What the host gives to the streams of a GPU, in the order in which it does, and where streams and the host wait.

    with launches() as given:
        loss = (x * 2).sum()
        loss.item()
    # [Given("launch", "mul", default), Given("launch", "sum", default), Given("host waits", "item", default)]

It looks at PyTorch, so it sees the same on virtual and on real GPUs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LAUNCH, STREAM_WAITS, HOST_WAITS = "launch", "stream waits", "host waits"
ITEM = "_local_scalar_dense"  # the operator of `item()`


class Given(NamedTuple):
    """One step of the host: `stream` is the one that gets work or waits, `other` the one that it waits for."""

    what: str
    name: str
    stream: torch.cuda.Stream
    other: torch.cuda.Stream | None = None


class _Launches(TorchDispatchMode):
    def __init__(self, given: list[Given]) -> None:
        super().__init__()
        self.given = given

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name == ITEM:
            self.given.append(Given(HOST_WAITS, "item", torch.cuda.current_stream()))
        elif _on_gpu(result) and not _is_view(func) and not name.startswith("empty"):
            self.given.append(Given(LAUNCH, name, torch.cuda.current_stream()))
        return result


@contextlib.contextmanager
def launches() -> Iterator[list[Given]]:
    """Inside the block, note what the host does: kernels that it launches, `wait_stream` and `item()`."""
    given: list[Given] = []
    wait_stream = torch.cuda.Stream.wait_stream

    def waits(stream: torch.cuda.Stream, other: torch.cuda.Stream) -> None:
        given.append(Given(STREAM_WAITS, "wait_stream", stream, other))
        wait_stream(stream, other)

    with patch.object(torch.cuda.Stream, "wait_stream", waits), _Launches(given):
        yield given


def _on_gpu(result: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in tree_leaves(result))


def _is_view(func: Any) -> bool:
    """A view is made by the host alone: no kernel runs."""
    return any(given.alias_info is not None and not given.alias_info.is_write for given in func._schema.arguments)
