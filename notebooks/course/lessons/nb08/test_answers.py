"""Answers to the exercises of notebook 08: right ones in an unusual form, and wrong ones that are nearly right."""

import random

import numpy as np
import pytest
import torch
from answers import all_right, all_wrong
from torch import distributed

pytestmark = pytest.mark.virtual_gpus(2)


def by_a_generator_of_python(pictures, world_size, rank, epoch):
    order = list(range(pictures))
    random.Random(epoch).shuffle(order)
    return (order * world_size)[rank : pictures + -pictures % world_size : world_size]


def in_a_fork(pictures, world_size, rank, epoch):
    with torch.random.fork_rng():
        torch.manual_seed(epoch)
        order = torch.randperm(pictures).tolist()
    return (order * world_size)[rank : pictures + -pictures % world_size : world_size]


def by_numpys_own_generator(pictures, world_size, rank, epoch):
    np.random.seed(epoch)
    order = np.random.permutation(pictures).tolist()
    return (order * world_size)[rank : pictures + -pictures % world_size : world_size]


def by_the_largest_wish(wish):
    stop = torch.tensor([int(wish)]).cuda()
    distributed.all_reduce(stop, distributed.ReduceOp.MAX)
    return bool(stop)


RIGHT = [
    ("08.sample", by_a_generator_of_python),
    ("08.sample", in_a_fork),
    ("08.agreed", by_the_largest_wish),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("08.sample", by_numpys_own_generator, "the generator of all"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
