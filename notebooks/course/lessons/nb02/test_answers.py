"""Answers to the exercises of notebook 02: right ones in an unusual form, and wrong ones that are nearly right."""

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

from course.lessons.nb02.puzzles.bytes_held import bytes_held
from course.lessons.nb02.puzzles.gather import gather
from course.lessons.nb02.puzzles.strip_module import strip_module

pytestmark = pytest.mark.virtual_gpus(2)


def joined_anew(outputs, device):
    """Right values and a graph, which leads to the copies and not to the weights."""

    def cut(part):
        if isinstance(part, torch.Tensor):
            return part.detach().requires_grad_() * 1
        return {key: cut(value) for key, value in part.items()} if isinstance(part, dict) else tuple(map(cut, part))

    return cut(gather(outputs, device))


def consumed(state):
    consume_prefix_in_state_dict_if_present(state, "module.")
    return state


RIGHT = [
    ("02.bytes_held", lambda module, gpus: tuple(bytes_held(module, gpus))),
    ("02.bytes_held", lambda module, gpus: np.array(bytes_held(module, gpus))),
    ("02.strip_module", lambda state: {k.removeprefix("module."): v.clone() for k, v in state.items()}),
    ("02.strip_module", consumed),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("02.bytes_held", lambda module, n: [sum(t.nbytes for t in module.parameters() if t.requires_grad)] * n, None),
    ("02.gather", joined_anew, "cuts the graph"),
    ("02.strip_module", lambda state: {k: v.float() for k, v in strip_module(state).items()}, None),
    ("02.strip_module", lambda state: strip_module(strip_module(state)), "every leading one"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
