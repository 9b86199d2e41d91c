"""Answers to the exercises of notebook 28: right ones in an unusual form, and wrong ones that are nearly right."""

import zlib

import numpy as np
import torch
from answers import all_right, all_wrong

RIGHT = [
    ("28.same", lambda a, b: (a.view(torch.int32) == b.view(torch.int32)).all()),
    ("28.numpy_seed", lambda seed: zlib.crc32(seed.to_bytes(8, "little"))),
    ("28.numpy_seed", lambda seed: np.random.SeedSequence(seed).generate_state(1)[0]),
    ("28.ordered_sum", lambda arrived: float(np.cumsum([0.0, *(value for _, value in sorted(arrived))])[-1])),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("28.same", lambda a, b: repr(a.tolist()) == repr(b.tolist()), None),
    ("28.numpy_seed", lambda seed: min(seed, 2**32 - 1), None),
    ("28.numpy_seed", lambda seed: 404, None),
    ("28.numpy_seed", lambda seed: float(seed % 2**32), None),
    ("28.numpy_seed", lambda seed: int(np.random.randint(2**31)), None),
    ("28.ordered_sum", lambda arrived: float(np.sum([value for _, value in sorted(arrived)])), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
