"""Answers to the exercises of notebook 26: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import torch
from answers import all_right, all_wrong
from torch import nn
from torch.func import stack_module_state

from course.lessons.nb26.puzzles.check_conversion import loop


def by_torch(linears, sizes):
    parameters, _ = stack_module_state(list(linears))
    return parameters["weight"], parameters["bias"], torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def by_numpy(linears, sizes):
    weight, bias, _ = by_torch(linears, sizes)
    return weight, bias, np.repeat(np.arange(len(sizes)), sizes)


def drawn_cases(convert):
    for _ in range(10):
        sizes = (*torch.randint(0, 4, (3,)).tolist(), 2)
        for fan_in, out in ((3, 2), (2, sum(sizes)), (4, 4), (sum(sizes), sum(sizes))):
            linears = nn.ModuleList(nn.Linear(fan_in, out) for _ in range(sum(sizes)))
            x = torch.randn(3, len(sizes), fan_in)
            assert torch.allclose(convert(linears, sizes)(x), loop(linears, sizes, x), atol=1e-4)


def one_case(convert):
    linears = [nn.Linear(4, 8) for _ in range(8)]
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(convert(linears, (3, 0, 5))(x), loop(linears, (3, 0, 5), x))


def equal_groups(convert):
    linears = [nn.Linear(4, 4) for _ in range(4)]
    x = torch.randn(2, 4, 4)
    torch.testing.assert_close(convert(linears, (1, 1, 1, 1))(x), loop(linears, (1, 1, 1, 1), x))


RIGHT = [
    ("26.as_one", by_torch),
    ("26.as_one", by_numpy),
    (
        "26.as_one",
        lambda linears, sizes: (*by_torch(linears, sizes)[:2], [g for g in range(len(sizes)) for _ in range(sizes[g])]),
    ),
    ("26.check_conversion", drawn_cases),
]
WRONG = [  # with the name of the mistake, None where it has none
    (
        "26.as_one",
        lambda linears, sizes: (torch.cat([m.weight for m in linears]), *by_torch(linears, sizes)[1:]),
        "joined without a class axis",
    ),
    ("26.check_conversion", one_case, None),
    ("26.check_conversion", equal_groups, None),
    ("26.check_conversion", lambda convert: None, "shapes alone"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
