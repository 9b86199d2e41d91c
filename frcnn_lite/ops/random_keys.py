"""Random numbers that are a pure function of `(seed, stream, position)`.

A detector samples anchors and proposals at random. With the generator of a device, what an image draws depends on the
device and on the images drawn before it, so one GPU and two GPUs train differently. A counter-based generator (Salmon
et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) has no state: each image brings a seed, and its draws
follow it to whichever device, replica and batch position it lands on.
"""

import torch
from torch import Tensor

MASK = 0xFFFFFFFF
GOLDEN = 0x9E3779B9  # 2^32 / golden ratio: consecutive streams differ in about half of their bits


def random_keys(seeds: Tensor, n: int, stream: int) -> Tensor:
    """`n` uniform float32 numbers in [0, 1) for each seed, equal bit for bit on every device.

    Args:
        seeds: (B,) int64, any values. Row b of the result depends on `seeds[b]` alone.
        n: how many numbers a row has; a longer row begins with the shorter one.
        stream: which of 2^32 independent sequences; give every use within one step its own.

    Returns:
        (B, n) float32, multiples of 2^-24. Equal keys do occur (about one row in sixty at n = 768): sort stably.

    Raises:
        ValueError: seeds are not as above.
    """
    if seeds.dtype != torch.int64 or seeds.dim() != 1:
        raise ValueError(f"`seeds` must be a (B,) int64 tensor, got {tuple(seeds.shape)} {seeds.dtype}")
    row = mix(mix(seeds & MASK) ^ ((seeds >> 32) & MASK) ^ ((stream * GOLDEN) & MASK))
    # Mixing the position first keeps rows whose states are close from being shifted copies of each other.
    position = mix(torch.arange(1, n + 1, device=seeds.device))
    bits = mix(mix(row.unsqueeze(1) ^ position))
    return (bits >> 8).to(torch.float32) * 2.0**-24


def mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit integers, held in int64, whose output bits each depend on every input bit.

    Two rounds of xor-shift and multiply, as in the finaliser of MurmurHash3 and in splitmix; shifts and constants of
    the kind found by C. Wellons' search ("Prospecting for hash functions", 2018). Both multipliers are below 2^31, so
    a product with a 32-bit value stays below 2^63: nothing overflows, and every device computes the same bits.
    """
    x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & MASK
    x = ((x ^ (x >> 12)) * 0x297A2D39) & MASK
    return x ^ (x >> 15)
