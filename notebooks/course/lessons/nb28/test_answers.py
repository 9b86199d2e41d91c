"""Answers to the exercises of notebook 28: right ones in an unusual form, and wrong ones that are nearly right."""

import random
import zlib

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong

pytestmark = pytest.mark.virtual_gpus(2)


def by_sequences(build, seed, rank):
    """Seeds of NumPy's own making, a generator forked for the weights, and the GPU seeded by itself."""
    with torch.random.fork_rng(devices=[0]):
        torch.manual_seed(seed)
        net = build()
    words = np.random.SeedSequence([seed, rank]).generate_state(3)
    torch.manual_seed(int(words[0]))
    np.random.seed(words[1])
    random.seed(int(words[2]))
    return net


def by_checksum(build, seed, rank):
    torch.manual_seed(seed)
    net = build()
    own = zlib.crc32(f"{seed} {rank}".encode())
    for seed_them in (torch.manual_seed, np.random.seed, random.seed):
        seed_them(own)
    return net


def hash_of_words(build, seed, rank):
    """By the clock: differs between the ranks and never repeats."""
    torch.manual_seed(seed)
    net = build()
    torch.seed()
    np.random.seed()
    random.seed()
    return net


def bytes_of(run):
    first, second = run().numpy().tobytes(), run().numpy().tobytes()
    if first != second:
        raise ValueError("not the same bits")


def nan_aware(run):
    a, b = run(), run()
    assert ((a == b) | (a.isnan() & b.isnan())).all()


RIGHT = [
    ("28.seeded", by_sequences),
    ("28.seeded", by_checksum),
    ("28.check_repeats", bytes_of),
    ("28.check_repeats", nan_aware),
    ("28.check_repeats", lambda run: np.testing.assert_array_equal(run().numpy(), run().numpy())),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("28.seeded", hash_of_words, None),
    ("28.seeded", lambda build, seed, rank: build(), None),
    ("28.check_repeats", lambda run: None, "one run"),
    ("28.check_repeats", lambda run: np.testing.assert_allclose(run(), run(), rtol=1e-6), "nearly equal"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
