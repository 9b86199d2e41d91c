"""The calls that a capture records, and what it takes to compute them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from vgpu.graphs.blocks import Block, Made
from vgpu.operators import again, dispatch
from vgpu.tensors.tensor import VirtualTensor, view


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a tensor of a recorded call is."""

    block: Block
    ordinal: int
    layout: again.Layout

    def tensor(self) -> VirtualTensor:
        """The tensor, for one replay."""
        return view(again.on(self.block.bytes(), self.layout), self.ordinal)


@dataclasses.dataclass
class Call:
    """One recorded call.

    Attributes:
        func: the operator.
        args: its arguments, with places for tensors of devices, and copies of the host's that are not pinned.
        kwargs: the same by name.
        guard: what the dispatcher included and excluded.
        made: which results are new memory, by their number.
        brought: which results are new memory of the host, by their number.
        last: blocks that no later call and no tensor uses.
    """

    func: Any
    args: tuple
    kwargs: dict[str, Any]
    guard: tuple[Any, Any]
    made: list[tuple[int, Made]] = dataclasses.field(default_factory=list)
    brought: list[tuple[int, torch.Tensor]] = dataclasses.field(default_factory=list)
    last: list[Made] = dataclasses.field(default_factory=list)

    def repeat(self) -> None:
        """Compute it again."""
        given = self.args, self.kwargs
        args, kwargs = tree_map(lambda leaf: leaf.tensor() if isinstance(leaf, Place) else leaf, given)
        with torch._C._ForceDispatchKeyGuard(*self.guard):
            results = tree_leaves(dispatch.run(self.func, args, kwargs))
        for number, block in self.made:
            block.values = results[number]._host.untyped_storage()
        for number, tensor in self.brought:
            tensor.copy_(results[number])

    def blocks(self) -> Iterator[Block]:
        """The blocks of its arguments and results."""
        yield from (leaf.block for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Place))
        yield from (block for _, block in self.made)


class Reserved:
    """Memory that a factory gave, with the values that it had: none but for ranges, which are filled at once."""

    def __init__(self, block: Made, values: torch.UntypedStorage | None) -> None:
        self._block, self.values = block, values
        self.last: list[Made] = []

    def repeat(self) -> None:
        """Give it again."""
        values = self.values
        self._block.values = torch.UntypedStorage(self._block.nbytes) if values is None else again.copy(values)

    def blocks(self) -> Iterator[Block]:
        """The block."""
        yield self._block
