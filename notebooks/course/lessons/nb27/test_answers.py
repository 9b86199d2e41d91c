"""Answers to the exercises of notebook 27: right ones in an unusual form, and wrong ones that are nearly right."""

import math

import numpy as np
import torch
from answers import all_right, all_wrong

RIGHT = [
    ("27.poly_rates", lambda lr, factors, step, total: lr * np.array(factors) * max(0, 1 - step / total) ** 0.9),
    ("27.learning_rate", lambda rate, old, new: torch.tensor(rate) * math.prod(new) / math.prod(old)),
    (
        "27.rest_of",
        lambda sizes, chosen: [
            sum(size for name, size in sizes if name not in chosen),
            tuple(n for n, _ in sizes if n not in chosen),
        ],
    ),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "27.rest_of",
        lambda sizes, chosen: (
            sum(s for n, s in sizes if n not in chosen),
            sorted(n for n, _ in sizes if n not in chosen),
        ),
        None,
    ),
    (
        "27.rest_of",
        lambda sizes, chosen: (
            sum(s for n, s in sizes if not any(c in n for c in chosen)),
            [n for n, _ in sizes if not any(c in n for c in chosen)],
        ),
        None,
    ),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
