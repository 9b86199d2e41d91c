"""Serial blocks into one grouped module and back: every tensor of the grouped module is the serial ones, end to end.

The one rule: parameters, BatchNorm's affine pair and its running statistics are concatenated along dimension 0, the
output channels. A grouped convolution's weight is (groups * out, in / groups, kh, kw) already, so no zeros are stored.
The rule holds for modules whose layers have `groups` or work on each channel alone.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

Grouped = TypeVar("Grouped", bound=nn.Module)
Block = TypeVar("Block", bound=nn.Module)


def pack_serial_blocks(blocks: Sequence[nn.Module], grouped: Grouped) -> Grouped:
    """`grouped` with the weights of `blocks`, so that it computes what their loop computes, block k in group k.

    Args:
        grouped: a module like each of `blocks`, as wide as all of them together. It takes copies of their weights, and
            their device, dtype and training mode.

    Raises:
        ValueError: there are no blocks, they were built differently, or BatchNorm averages over all batches
            (`momentum=None`) and the blocks have seen different numbers of them.
        RuntimeError: of `load_state_dict`, when `grouped` has other names or sizes.
    """
    if not blocks:
        raise ValueError("`blocks` must be at least one module, got none")
    first = blocks[0]
    for k, block in enumerate(blocks):
        if str(block) != str(first):
            raise ValueError(f"`blocks` must all be built alike, got {first} at 0 and {block} at {k}")
        if block.training != first.training:
            raise ValueError(f"`blocks` must all be in one mode, got training={first.training} at 0, not so at {k}")
    states = [block.state_dict() for block in blocks]
    averages = any(getattr(module, "momentum", 0) is None for module in first.modules())
    if averages and not _equal_counts(states):
        raise ValueError("`blocks` must have equal num_batches_tracked where momentum is None, got different counts")
    grouped.to(next(first.parameters()))
    grouped.load_state_dict(pack_state_dicts(states))
    return grouped.train(first.training)


def unpack(grouped: nn.Module, block: Block, groups: int) -> list[Block]:
    """The serial blocks of a grouped module, the reverse of `pack_serial_blocks`.

    Args:
        block: one module as wide as one group, of any weights. `groups` copies of it are returned, with the weights,
            the device, the dtype and the training mode of `grouped`.
    """
    blocks = []
    for state in unpack_state_dict(grouped.state_dict(), groups):
        own = copy.deepcopy(block).to(next(grouped.parameters()))
        own.load_state_dict(state)
        blocks.append(own.train(grouped.training))
    return blocks


def pack_state_dicts(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state_dict of the grouped module from those of the serial blocks (works on gradients by name, too).

    Args:
        states: one for each block, in the order of the groups.

    Returns:
        Name -> tensor. BatchNorm's scalar `num_batches_tracked` cannot differ between groups: the largest is kept.

    Raises:
        ValueError: there are no blocks, or their names or shapes differ.
    """
    if not states:
        raise ValueError("`states` must be at least one state_dict, got none")
    for k, state in enumerate(states):
        if odd := sorted(state.keys() ^ states[0].keys()):
            raise ValueError(f"`states` must all have the same names, got {odd} in only one of 0 and {k}")
    packed = {}
    for name in states[0]:
        parts = [state[name] for state in states]
        if len({part.shape for part in parts}) > 1:
            shapes = [tuple(part.shape) for part in parts]
            raise ValueError(f"`states` must have one shape for {name}, got {shapes}")
        packed[name] = torch.cat(parts) if parts[0].ndim else torch.stack(parts).amax()
    return packed


def unpack_state_dict(state: Mapping[str, Tensor], groups: int) -> list[dict[str, Tensor]]:
    """State_dicts of the serial blocks, the reverse of `pack_state_dicts`; tensors are copies.

    Args:
        state: the state_dict of the grouped module.
        groups: how many blocks it is made of.

    Raises:
        ValueError: a tensor's first dimension cannot be cut into `groups` equal parts.
    """
    states: list[dict[str, Tensor]] = [{} for _ in range(groups)]
    for name, value in state.items():
        if value.ndim and value.shape[0] % groups:
            raise ValueError(f"`groups` must divide {value.shape[0]}, the rows of {name}, got {groups}")
        parts = value.chunk(groups) if value.ndim else [value] * groups
        for serial, part in zip(states, parts, strict=True):
            serial[name] = part.clone()
    return states


def _equal_counts(states: Sequence[Mapping[str, Tensor]]) -> bool:
    counts = [[int(value) for value in state.values() if value.ndim == 0] for state in states]
    return all(count == counts[0] for count in counts)
