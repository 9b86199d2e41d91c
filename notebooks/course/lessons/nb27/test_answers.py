"""Answers to the exercises of notebook 27: right ones in an unusual form, and wrong ones that are nearly right."""

import math
from collections import Counter

import numpy as np
import torch
from answers import all_right, all_wrong


def held(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def by_identity(model, optimizer):
    wanted = list(model.parameters())
    assert len(held(optimizer)) == len(wanted)
    for p in wanted:
        assert sum(p is q for q in held(optimizer)) == 1


def by_set_and_length(model, optimizer):
    if set(held(optimizer)) != set(model.parameters()) or len(held(optimizer)) != len(set(held(optimizer))):
        raise ValueError("not each once")


def by_storage(model, optimizer):
    """Memory in place of objects: nothing here shares memory without being one object."""
    assert sorted(p.data_ptr() for p in held(optimizer)) == sorted(p.data_ptr() for p in model.parameters())


def in_order(model, optimizer):
    """Asks for the order of the model as well, which a right optimizer need not keep."""
    assert [id(p) for p in held(optimizer)] == [id(p) for p in model.parameters()]


def shapes(model, optimizer):
    assert Counter(p.shape for p in held(optimizer)) == Counter(p.shape for p in model.parameters())


def tied_names(model, optimizer):
    """Counts a shared parameter once for each name."""
    names = [id(p) for _, p in model.named_parameters(remove_duplicate=False)]
    assert sorted(id(p) for p in held(optimizer)) == sorted(names)


RIGHT = [
    ("27.check_optimizer", by_identity),
    ("27.check_optimizer", by_set_and_length),
    ("27.check_optimizer", by_storage),
    (
        "27.moved",
        lambda rate, drops, old, new: (
            torch.tensor(rate, dtype=torch.float64) * math.prod(new) / math.prod(old),
            np.array(drops) * math.prod(old) // math.prod(new),
        ),
    ),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("27.check_optimizer", in_order, None),
    ("27.check_optimizer", shapes, "counts only"),
    ("27.check_optimizer", tied_names, None),
    (
        "27.check_optimizer",
        lambda model, optimizer: [p in held(optimizer) for p in model.parameters()],
        "tensors in a list",
    ),
    ("27.check_optimizer", lambda model, optimizer: None, None),
    ("27.moved", lambda rate, drops, old, new: (rate * math.prod(new) / math.prod(old), drops), "milestones kept"),
    ("27.moved", lambda rate, drops, old, new: (rate, drops), None),
    (
        "27.moved",
        lambda rate, drops, old, new: (
            rate * new[0] * new[1] / old[0] / old[1],
            [drop * new[0] * new[1] / old[0] / old[1] for drop in drops],
        ),
        "milestones the wrong way",
    ),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
