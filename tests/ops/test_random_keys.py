import pytest
import torch

from frcnn_lite.ops.random_keys import random_keys


def hash_in_python(seed: int, position: int, stream: int) -> float:
    """The same hash on Python's unbounded integers, reduced to 32 bits after every multiplication."""
    mask = 0xFFFFFFFF

    def mix(x: int) -> int:
        x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & mask
        x = ((x ^ (x >> 12)) * 0x297A2D39) & mask
        return x ^ (x >> 15)

    row = mix(mix(seed & mask) ^ ((seed >> 32) & mask) ^ ((stream * 0x9E3779B9) & mask))
    return (mix(mix(row ^ mix(position + 1))) >> 8) / 2**24


def test_equals_the_hash_on_unbounded_integers() -> None:
    seeds = [0, 1, -1, 123456789012345, 2**63 - 1, -(2**63)]
    for stream in (0, 1, 2**32 - 1):
        expected = [[hash_in_python(seed, position, stream) for position in range(7)] for seed in seeds]
        assert random_keys(torch.tensor(seeds), 7, stream).tolist() == expected


def test_a_row_depends_on_its_own_seed_and_begins_with_the_shorter_row() -> None:
    keys = random_keys(torch.tensor([5, 9, 5]), 100, 0)
    assert torch.equal(keys[0], keys[2])
    assert torch.equal(keys[1:2], random_keys(torch.tensor([9]), 100, 0))
    assert torch.equal(keys[:, :40], random_keys(torch.tensor([5, 9, 5]), 40, 0))


def test_uniform() -> None:
    """Chi-squared over 256 bins of 2^20 keys: 255 expected, standard deviation 22.6."""
    keys = random_keys(torch.arange(1024), 1024, 0).flatten()
    assert keys.dtype == torch.float32 and keys.min() >= 0 and keys.max() < 1
    counts = torch.histc(keys, bins=256, min=0, max=1)
    chi_squared = ((counts - 4096) ** 2 / 4096).sum().item()
    assert 165 < chi_squared < 345


@pytest.mark.parametrize("stride", [1, 2**20, 2**32, -7])
def test_rows_positions_and_streams_are_uncorrelated(stride: int) -> None:
    """A correlation of n independent pairs has standard deviation 1 / sqrt(n) = 0.0022; four of them are allowed."""
    seeds = torch.arange(512) * stride
    keys = random_keys(seeds, 400, 0) - 0.5
    other_stream = random_keys(seeds, 400, 1) - 0.5
    pairs = {
        "neighbouring seeds": (keys[:-1], keys[1:]),
        "neighbouring positions": (keys[:, :-1], keys[:, 1:]),
        "streams": (keys, other_stream),
        "seed shifted against position": (keys[:-1, 1:], keys[1:, :-1]),
    }
    for name, (a, b) in pairs.items():
        correlation = 12 * (a.double() * b.double()).mean().item()
        assert abs(correlation) < 4 * 0.0023, name


def test_one_bit_of_the_seed_changes_half_of_the_bits_of_a_key() -> None:
    seeds = torch.arange(256) * 2654435761
    base = (random_keys(seeds, 16, 0) * 2**24).long()
    for bit in range(63):
        changed = base ^ (random_keys(seeds ^ (1 << bit), 16, 0) * 2**24).long()
        flipped = sum(((changed >> k) & 1).sum().item() for k in range(24)) / (256 * 16 * 24)
        assert 0.48 < flipped < 0.52, f"bit {bit}"


def test_wrong_seeds_are_named() -> None:
    with pytest.raises(ValueError, match=r"`seeds` must be a \(B,\) int64 tensor, got \(3,\) torch.float32"):
        random_keys(torch.zeros(3), 4, 0)
