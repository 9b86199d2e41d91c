"""Answers to the exercises of notebook 04: right ones in an unusual form, and wrong ones that are nearly right."""

import copy

import pytest
import torch
from answers import all_right, all_wrong

from course.lessons.nb04.puzzles.current_device import current_device

pytestmark = pytest.mark.virtual_gpus(2)


def on_the_whole_copy(module, x):
    torch.testing.assert_close(copy.deepcopy(module).cuda(1)(x.cuda(1)).cuda(0), module(x))


def where_its_bias_is(layer, array):
    return torch.from_numpy(array).to(layer.bias.device)


def all_ones(layer, array):
    return torch.ones(array.shape, device=layer.weight.device)


RIGHT = [
    ("04.current_device", lambda events: [torch.device("cuda", k) for k in current_device(events)]),
    ("04.current_device", lambda events: tuple(f"cuda:{k}" for k in current_device(events))),
    ("04.bring_to", lambda layer, array: torch.as_tensor(array, device=layer.weight.device)),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("04.bring_to", lambda layer, array: layer.weight.new_tensor(array), "with the layer s dtype"),
    ("04.same_on_two_gpus", on_the_whole_copy, "in evaluation"),
    ("04.current_device", lambda events: None, None),
    ("04.bring_to", where_its_bias_is, None),
    ("04.bring_to", all_ones, None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
