"""Answers to the exercises of notebook 12: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong


def check_rows_with_noise(rows):
    output = torch.rand(2, 10, 3, 4)
    table = rows(output)
    assert table.shape == (2, 24, 5)
    for p in range(2):
        for y in range(3):
            for x in range(4):
                assert table[p, (y * 4 + x) * 2 : (y * 4 + x) * 2 + 2].flatten().equal(output[p, :, y, x])


def exp_of_the_difference(logits):
    shares = (logits - logits.amax(dim=1, keepdim=True)).exp()
    shares = (shares / shares.sum(dim=1, keepdim=True))[:, :-1]
    return shares.argmax(dim=1), shares.amax(dim=1)


def exp_as_it_is(logits):
    exponentials = logits.exp()
    scores, names = (exponentials[:, :-1] / exponentials.sum(1)[:, None]).max(1)
    return names, scores


def names_as_floats(logits):
    names, scores = exp_of_the_difference(logits)
    return names.float(), scores


RIGHT = [
    ("12.check_rows", check_rows_with_noise),
    ("12.name_regions", exp_of_the_difference),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("12.name_regions", exp_as_it_is, "exp of large logits"),
    ("12.name_regions", names_as_floats, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
