"""Answers to the exercises of notebook 25: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
import torch
from answers import assert_right, assert_wrong

RIGHT = [
    ("25.class_index", lambda sizes: np.repeat(np.arange(len(sizes)), sizes)),
    ("25.class_index", lambda sizes: torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("25.per_class", lambda x, w: torch.einsum("nbi,noi->bno", x, w), "one letter for batch and class"),
    ("25.add_bias", lambda out, bias: out.add_(bias.T), None),
]


@pytest.mark.parametrize(("key", "answer"), RIGHT)
def test_right_in_an_unusual_form(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer", "name"), WRONG)
def test_nearly_right_is_wrong(key, answer, name):
    assert_wrong(key, answer, name)
