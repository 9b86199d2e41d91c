"""Philox 4x32-10, the generator of CUDA, and which of its numbers a GPU puts where.

The generator: J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011. One call
turns a key (the seed) and a counter into four words of 32 bits. In the kernels of CUDA the low half of the counter is
the generator's offset divided by four, and the high half is the number of the thread, so that no two threads share a
word. How many threads there are depends on the GPU; so do the numbers, from one round of all its threads on.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from vgpu.machine import profiles

WORDS = 4  # of one call
BLOCK = 256  # threads of a block in the kernels that draw

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)  # what the two halves of the key grow by from round to round
_LOW = (1 << 32) - 1
# So few counters fit into one Python integer, 64 bits each, and that is faster than a hundred operators.
_FEW = 512
_ONES = sum(1 << 64 * k for k in range(_FEW))
_NUMBERED = sum(k << 64 * k for k in range(_FEW))
_CHUNK = 1 << 14  # counters whose tensors stay in the cache
# The GPU whose grid draws where no profile names one: a virtual GPU says that it has one multiprocessor.
_USUAL = profiles.PROFILES["h200"]


class Generator(Protocol):
    """What the kernels need of a generator."""

    def advance(self, steps: int) -> tuple[int, int]:
        """Move the offset on, and return the seed and the offset before."""
        ...


class Grid(NamedTuple):
    """The threads of a kernel that goes over `count` elements in strides of the whole grid."""

    threads: int
    rounds: int  # how often each of them draws

    @property
    def steps(self) -> int:
        """By how much the kernel moves the offset of its generator."""
        return self.rounds * WORDS


def grid(count: int, each: int = WORDS) -> Grid:
    """The grid for `count` elements, of which a thread draws `each` at once."""
    gpu = _USUAL if profiles.chosen() is None else profiles.current()
    most = gpu.multi_processor_count * (gpu.max_threads_per_multi_processor // BLOCK)
    threads = min(most, -(-count // BLOCK)) * BLOCK
    return Grid(threads, -(-count // (threads * each)))


def words(seed: int, offset: int, threads: int, wanted: int = WORDS, first: int = 0) -> list[Tensor]:
    """The first `wanted` words that each of some threads draws at an offset, as int64 tensors (threads,).

    Args:
        seed: of the generator, as the offset is.
        offset: of the generator, a multiple of 4.
        threads: how many.
        wanted: how many of the four words.
        first: the number of the first thread.
    """
    counter = offset // WORDS
    if threads <= _FEW:
        kept = (1 << 64 * threads) - 1
        ones = _ONES & kept
        drawn = _rounds(
            seed, [ones * (counter & _LOW), ones * (counter >> 32), (_NUMBERED & kept) + ones * first, 0], ones
        )[:wanted]
        return [torch.frombuffer(bytearray(word.to_bytes(8 * threads, "little")), dtype=torch.int64) for word in drawn]
    start = [torch.tensor(counter & _LOW), torch.tensor(counter >> 32)]
    parts = torch.arange(first, first + threads).split(_CHUNK)
    drawn = [_rounds(seed, [*start, part, torch.tensor(0)], 1)[:wanted] for part in parts]
    return drawn[0] if len(drawn) == 1 else [torch.cat(word) for word in zip(*drawn, strict=True)]


def sequence(seed: int, offset: int, count: int) -> Tensor:
    """The words that the first thread draws one after the other, from an offset on (count,)."""
    calls = torch.arange(offset // WORDS, offset // WORDS + -(-count // WORDS))
    drawn = _rounds(seed, [calls & _LOW, calls >> 32, torch.tensor(0), torch.tensor(0)], 1)
    return torch.stack(drawn, 1).flatten()[:count]


def _rounds(seed: int, counter: list[Any], ones: int) -> list[Any]:
    """The ten rounds, for tensors and for integers whose lanes of 64 bits hold one counter each.

    A product of two words fills its lane and does not leave it. What stands above a word is cut off before the next
    product.

    Args:
        seed: the key.
        counter: its four words, lowest first.
        ones: 1 in every lane.
    """
    low, keys = ones * _LOW, (seed & _LOW, seed >> 32)
    a, b, c, d = counter
    for _ in range(10):
        first, second = a * _FACTORS[0], c * _FACTORS[1]
        a, c = (second >> 32) ^ b, (first >> 32) ^ d
        a ^= ones * keys[0]
        c ^= ones * keys[1]
        a &= low
        c &= low
        b, d = second, first
        keys = ((keys[0] + _STEPS[0]) & _LOW, (keys[1] + _STEPS[1]) & _LOW)
    return [a, b & low, c, d & low]
