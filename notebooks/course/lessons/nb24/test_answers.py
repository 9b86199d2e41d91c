"""Answers to the exercises of notebook 24: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong


def loop_over_chunks(out, x, groups):
    out = out.clone()
    for part in out.chunk(groups, dim=1):
        part += x
    return out


RIGHT = [
    ("24.weight_shape", lambda a, b, k, g: torch.Size([b, a // g, k, k])),
    ("24.add_shortcut", loop_over_chunks),
    (
        "24.add_shortcut",
        lambda out, x, g: (out.view(len(x), g, *x.shape[1:]) + x[:, None].expand(-1, g, -1, -1, -1)).reshape(out.shape),
    ),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("24.weight_shape", lambda a, b, k, g: (b, a / g, k, k), None),
    ("24.add_shortcut", lambda out, x, groups: out + x.repeat(1, groups, 1, 1), "copies of x"),
    ("24.add_shortcut", lambda out, x, groups: out.unflatten(1, (groups, -1)).add_(x.unsqueeze(1)).flatten(1, 2), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
