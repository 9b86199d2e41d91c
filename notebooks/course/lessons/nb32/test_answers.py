"""Answers to the exercises of notebook 32: right ones in an unusual form, and wrong ones that are nearly right."""

from fractions import Fraction

import torch
from answers import all_right, all_wrong

RIGHT = [
    ("32.source", lambda i, size, output: Fraction((2 * i + 1) * size - output, 2 * output)),
    ("32.source", lambda i, size, output: torch.tensor((i + 0.5) * size / output - 0.5)),
    ("32.prelu_by_relu", lambda x, slopes: torch.where(x > 0, x, x * slopes.view(-1, 1, 1))),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "32.fixed_window",
        lambda size, out: None if size % out > 1 else (size - (out - 1) * (size // out), size // out),
        None,
    ),
    ("32.source", lambda i, size, output: str((i + 0.5) * size / output - 0.5), None),
    (
        "32.prelu_by_relu",
        lambda x, slopes: torch.relu_(x.clone()) - slopes.view(-1, 1, 1) * torch.relu_(x.neg_()),
        None,
    ),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
