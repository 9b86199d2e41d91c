"""Name the line that overwrote a tensor which autograd had saved for backward.

Autograd remembers a *version* with every tensor it saves, and each in-place operation adds one to the version of the
tensor and of all its views. At backward the two must be equal. PyTorch's error names the tensor, anomaly mode names the
operation that saved it; neither names the line that wrote. This does:

    with name_inplace_writes():
        loss = criterion(model(images), target)
        loss.backward()

It slows every operation down, so it is for finding the line and not for training. What goes past the dispatcher stays
unseen: a write through `.numpy()` or `.data` changes no version, and neither PyTorch nor this can tell.
"""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TORCH = str(Path(torch.__file__).parent)
SEEN = 3  # writes to name in a message; one is the rule, a loop makes thousands


class InPlaceError(RuntimeError):
    """A saved tensor was overwritten before backward; `writes` are the places, first one first."""

    def __init__(self, words: str, writes: list["Write"]) -> None:
        super().__init__(words)
        self.writes = writes


class Line(NamedTuple):
    """A line of the reader's program: not torch's, not this file's."""

    file: str
    number: int
    function: str
    code: str

    def __str__(self) -> str:
        # a notebook cell lives in a temporary file whose name says nothing
        cell = "ipykernel" in self.file or self.file.startswith("<")
        place = "a notebook cell" if cell else Path(self.file).name
        return f"{self.code}   ({self.function}, line {self.number} of {place})"


class Write(NamedTuple):
    """One in-place operation: which storage, at which version, by which operator, on which line."""

    storage: int
    version: int
    operator: str
    line: Line


class Saved(NamedTuple):
    """A tensor as autograd saved it: `since` counts the writes before it, so that a reused address misleads nobody."""

    tensor: Tensor
    version: int
    since: int
    line: Line


class _WriteLog(TorchDispatchMode):
    """Notes every operator that writes to one of its arguments; changes none."""

    def __init__(self, writes: list[Write]) -> None:
        super().__init__()
        self.writes = writes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            line = calling_line()
            for tensor in _written(func, args, kwargs):
                self.writes.append(Write(_storage(tensor), tensor._version, str(func), line))
        return func(*args, **kwargs)


@contextmanager
def name_inplace_writes() -> Iterator[list[Write]]:
    """Within the block, backward raises InPlaceError with the lines that wrote.

    The forward pass, the write and `backward()` must all be inside the block. Source: the message of
    torch/csrc/autograd/saved_variable.cpp, which knows both versions and not the line between them.

    Yields:
        The list of all writes, which grows within the block.

    Raises:
        InPlaceError: from `backward()`, when a tensor that it needs was overwritten after it was saved.
    """
    writes: list[Write] = []

    def keep(tensor: Tensor) -> Saved:
        # detach shares the version counter and leaves out the graph, which would keep itself alive
        return Saved(tensor.detach(), tensor._version, len(writes), calling_line())

    def give_back(saved: Saved) -> Tensor:
        if saved.tensor._version != saved.version:  # autograd leaves the comparison to whoever hooks in
            raise _blame(saved, writes)
        return saved.tensor

    with _WriteLog(writes), torch.autograd.graph.saved_tensors_hooks(keep, give_back):
        yield writes


def calling_line() -> Line:
    """The innermost line on the stack that is neither torch's nor this file's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((TORCH, __file__)):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return Line(file, number, frame.f_code.co_name, linecache.getline(file, number).strip())


def versions(tensors: dict[str, Tensor]) -> str:
    """One line a tensor: name, dtype, shape and version. The counter is torch's private `_version`."""
    return "\n".join(f"{name}: {t.dtype} {tuple(t.shape)}, version {t._version}" for name, t in tensors.items())


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for k, argument in enumerate(func._schema.arguments):
        value = args[k] if k < len(args) else kwargs.get(argument.name)
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
    return found


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata  # shared by all views, as the version is


def _blame(saved: Saved, writes: list[Write]) -> InPlaceError:
    now = saved.tensor._version
    storage = _storage(saved.tensor)
    guilty = [w for w in writes[saved.since :] if w.storage == storage and saved.version <= w.version < now]
    lines = [f"  {write.operator.removeprefix('aten.')}: {write.line}" for write in guilty[:SEEN]]
    if len(guilty) > SEEN:
        lines.append(f"  and {len(guilty) - SEEN} more")
    words = [
        f"a saved tensor was written to: {saved.tensor.dtype} {tuple(saved.tensor.shape)} is at version {now}, "
        f"and was saved at version {saved.version} by",
        f"  {saved.line}",
        "written by",
        *(lines or ["  an operation this block did not see: is the forward pass, or a thread, outside of it?"]),
        "Use the version without the underscore, or give the writer a clone.",
    ]
    return InPlaceError("\n".join(words), guilty)
