"""Serial blocks into one grouped module and back: every tensor of the grouped module is the serial ones, end to end.

The one rule: parameters, BatchNorm's affine pair and its running statistics are concatenated along dimension 0, the
output channels. A grouped convolution's weight is (groups * out, in / groups, kh, kw) already, so no zeros are stored.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from frcnn_lite.layers.bottleneck import Bottleneck
from frcnn_lite.layers.grouped_bottleneck import GroupedBottleneck


def pack_serial_blocks(blocks: Sequence[Bottleneck], shared_input: bool = True) -> GroupedBottleneck:
    """One grouped bottleneck that computes what the loop over `blocks` computes, block k in channel block k.

    With `shared_input` the grouped module reads (B, in, H, W) as each block did; without, block k reads the k-th part
    of (B, len(blocks) * in, H, W). Device, dtype and training mode are the blocks' own; the weights are copies.
    Raises ValueError when there are no blocks, when they were built differently, or when BatchNorm averages over all
    batches (`momentum=None`) and the blocks have seen different numbers of them.
    """
    if not blocks:
        raise ValueError("blocks: expected at least one bottleneck, got none")
    first = blocks[0]
    for k, block in enumerate(blocks):
        if block.config != first.config:
            raise ValueError(f"blocks: expected all built alike, got {first.config} at 0 and {block.config} at {k}")
        if block.training != first.training:
            raise ValueError(f"blocks: expected all in one mode, got training={first.training} at 0, not so at {k}")
    states = [block.state_dict() for block in blocks]
    if first.config.momentum is None and not _equal_counts(states):
        raise ValueError("blocks: expected equal num_batches_tracked where momentum is None, got different counts")
    grouped = GroupedBottleneck(len(blocks), first.config, shared_input).to(first.conv1.weight)
    grouped.load_state_dict(pack_state_dicts(states))
    return grouped.train(first.training)


def unpack(grouped: GroupedBottleneck) -> list[Bottleneck]:
    """The serial blocks of a grouped bottleneck, the reverse of `pack_serial_blocks`."""
    states = unpack_state_dict(grouped.state_dict(), grouped.groups)
    blocks = []
    for state in states:
        block = Bottleneck(grouped.config).to(grouped.conv1.weight)
        block.load_state_dict(state)
        blocks.append(block.train(grouped.training))
    return blocks


def pack_state_dicts(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state_dict of the grouped module from those of the serial blocks (works on gradients by name, too).

    BatchNorm's scalar `num_batches_tracked` cannot differ between groups: the largest is kept.
    Raises ValueError when the blocks' keys differ.
    """
    if not states:
        raise ValueError("states: expected at least one state_dict, got none")
    for k, state in enumerate(states):
        if state.keys() != states[0].keys():
            odd = sorted(state.keys() ^ states[0].keys())
            raise ValueError(f"states: expected the same keys in all, got {odd} in only one of 0 and {k}")
    packed = {}
    for key in states[0]:
        parts = [state[key] for state in states]
        packed[key] = torch.cat(parts) if parts[0].ndim else torch.stack(parts).amax()
    return packed


def unpack_state_dict(state: Mapping[str, Tensor], groups: int) -> list[dict[str, Tensor]]:
    """State_dicts of the `groups` serial blocks, the reverse of `pack_state_dicts`; tensors are copies.

    Raises ValueError when a tensor's first dimension cannot be cut into `groups` equal parts.
    """
    states: list[dict[str, Tensor]] = [{} for _ in range(groups)]
    for key, value in state.items():
        if value.ndim and value.shape[0] % groups:
            raise ValueError(f"groups: expected a divisor of {value.shape[0]}, the rows of {key}, got {groups}")
        parts = value.chunk(groups) if value.ndim else [value] * groups
        for serial, part in zip(states, parts, strict=True):
            serial[key] = part.clone()
    return states


def _equal_counts(states: Sequence[Mapping[str, Tensor]]) -> bool:
    counts = [[int(value) for value in state.values() if value.ndim == 0] for state in states]
    return all(count == counts[0] for count in counts)
