"""Answers to the exercises of notebook 23: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong
from torch.nn import functional as F

RIGHT = [
    (
        "23.conv_by_hand",
        lambda x, w: torch.einsum("bchwij,ocij->bohw", x.unfold(2, w.shape[2], 1).unfold(3, w.shape[3], 1), w),
    ),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "23.conv_by_hand",
        lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1).flip(2, 3), padding=1),
        "asks for the convolution",
    ),
    (
        "23.put_back",
        lambda columns, size, kernel: F.fold(columns.mul_(1), size, kernel) / F.fold(columns.fill_(1), size, kernel),
        None,
    ),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
