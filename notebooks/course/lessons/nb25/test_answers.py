"""Answers to the exercises of notebook 25: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import torch
from answers import all_right, all_wrong

RIGHT = [
    ("25.class_index", lambda sizes: np.repeat(np.arange(len(sizes)), sizes)),
    ("25.class_index", lambda sizes: torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("25.per_class", lambda x, w: torch.einsum("nbi,noi->bno", x, w), "one letter for batch and class"),
    ("25.add_bias", lambda out, bias: out.add_(bias.T), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
