"""Answers to the exercises of notebooks 04 to 11 that are right in an unusual way, and some that are nearly right."""

import copy
import random
from math import ceil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answers import assert_right, assert_wrong
from torch import distributed

import vgpu
from course.lessons.nb04.puzzles.current_device import current_device


@pytest.fixture(autouse=True)
def two_gpus():
    with vgpu.virtual_gpus(2):
        yield


def on_the_whole_copy(module, x):
    torch.testing.assert_close(copy.deepcopy(module).cuda(1)(x.cuda(1)).cuda(0), module(x))


def where_its_bias_is(layer, array):
    return torch.from_numpy(array).to(layer.bias.device)


def all_ones(layer, array):
    return torch.ones(array.shape, device=layer.weight.device)


def within_a_hundredth(loss_of):
    scores, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for sizes in ([1, 3, 2], [0, 4, 2]):
        assert torch.allclose(loss_of(scores, target, sizes), F.cross_entropy(scores, target), atol=0.1)


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


def from_all_reduce(whole):
    distributed.all_reduce(whole)
    return whole.chunk(distributed.get_world_size())[distributed.get_rank()]


def on_the_cpu(whole):
    return from_all_reduce(whole).cpu()


def over_a_list(whole):
    part = torch.empty_like(whole.chunk(2)[0])
    distributed.reduce_scatter(part, [*whole.chunk(2)])
    return part


def with_rows_of_zeros(build):
    net, optimizer = build()
    before = [parameter.full_tensor().clone() for parameter in net.parameters()]
    net(torch.zeros(2, 8, device="cuda")).square().sum().backward()
    optimizer.step()
    assert not any(new.full_tensor().equal(old) for new, old in zip(net.parameters(), before, strict=True))


def by_gathered_parts(x, weight, bias):
    rank, size = distributed.get_rank(), distributed.get_world_size()
    mine = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    parts = [torch.empty_like(mine) for _ in range(size)]
    distributed.all_gather(parts, mine)
    return sum(parts) + bias


def half_of_everything(x, weight, bias):
    distributed.all_reduce(y := F.linear(x, weight))
    return y / 2 + bias


def with_an_even_share(shapes, ranks):
    return ceil(16 * sum(rows * columns for rows, columns in shapes) / ranks) + 8 * max(r * c for r, c in shapes)


RIGHT = [
    ("04.current_device", lambda events: [torch.device("cuda", k) for k in current_device(events)]),
    ("04.current_device", lambda events: tuple(f"cuda:{k}" for k in current_device(events))),
    ("04.bring_to", lambda layer, array: torch.as_tensor(array, device=layer.weight.device)),
    ("04.bring_to", lambda layer, array: layer.weight.new_tensor(array)),
    ("08.sample", by_a_generator_of_python),
    ("08.sample", in_a_fork),
    ("08.agreed", by_the_largest_wish),
    ("10.reduce_scattered", from_all_reduce),
    ("11.row_parallel", by_gathered_parts),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("04.same_on_two_gpus", on_the_whole_copy, "in evaluation"),
    ("04.current_device", lambda events: None, None),
    ("04.bring_to", where_its_bias_is, None),
    ("04.bring_to", all_ones, None),
    ("06.same_loss", within_a_hundredth, None),
    ("08.sample", by_numpys_own_generator, "the generator of all"),
    ("10.reduce_scattered", on_the_cpu, None),
    ("10.reduce_scattered", over_a_list, "reduce scatter itself"),
    ("10.fullest_rank", with_an_even_share, "the average rank"),
    ("10.fullest_rank", lambda shapes, ranks: None, None),
    ("10.optimizer_trains", with_rows_of_zeros, "compared with itself"),
    ("11.row_parallel", half_of_everything, "all columns"),
]


@pytest.mark.parametrize(("key", "answer"), RIGHT)
def test_right_in_a_different_way(key, answer):
    assert_right(key, answer)


@pytest.mark.parametrize(("key", "answer", "name"), WRONG)
def test_nearly_right_is_wrong(key, answer, name):
    assert_wrong(key, answer, name)
