"""Answers to the exercises of notebook 20: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
from answers import all_right, all_wrong
from torch import distributed

from frcnn_lite.parallel import reduce_loss_over_ranks

pytestmark = pytest.mark.virtual_gpus(2)


def own_loss_as_detr(total, objects):
    mean = objects.float()
    distributed.all_reduce(mean)
    return total / torch.clamp(mean / distributed.get_world_size(), min=1).item()


def own_loss_in_place(total, objects):
    distributed.all_reduce(objects)
    return distributed.get_world_size() * total / max(int(objects), 1)


def own_loss_by_gathered_counts(total, objects):
    counts = [torch.zeros_like(objects) for _ in range(distributed.get_world_size())]
    distributed.all_gather(counts, objects)
    return total * len(counts) / max(1, sum(int(count) for count in counts))


def own_loss_by_one_message(total, objects):
    both = torch.stack([total.detach(), objects.to(total)])
    distributed.all_reduce(both)
    return total * distributed.get_world_size() / both[1].clamp(min=1)


def own_loss_with_an_epsilon(total, objects):
    distributed.all_reduce(objects)
    return total * distributed.get_world_size() / (objects + 1e-6)


def own_loss_of_the_library(total, objects):
    return reduce_loss_over_ranks(total, objects)[0]


def own_loss_with_a_small_number(total, objects):
    distributed.all_reduce(objects)
    return total * distributed.get_world_size() / (objects + 1)


def check_shares_by_norms_and_values(program):
    whole = program([list(range(8))])
    for shares in ([[2], [0, 1, 3, 4, 5, 6, 7]], [[7, 6, 5], [4, 3, 2], [1, 0]], [[k] for k in range(8)]):
        gradient = program(shares)
        if not (gradient - whole).abs().max() < 1e-4:
            raise AssertionError(f"{shares}: {gradient}")


def check_shares_with_an_empty_rank(program):
    for shares in ([[], list(range(8))], [[0, 1, 2, 3, 4], [6, 7], [5]]):
        assert torch.allclose(program(shares), program([list(range(8))]), atol=1e-4)


def check_shares_as_in_the_notebook(program):
    for shares in ([[0, 2, 4, 6], [1, 3, 5, 7]], [[0, 3, 6], [1, 4, 7], [2, 5]]):
        torch.testing.assert_close(program(shares), program([list(range(8))]), rtol=1e-4, atol=1e-5)


def check_shares_of_three_in_order(program):
    torch.testing.assert_close(program([[0, 1, 2], [3, 4, 5], [6, 7]]), program([list(range(8))]), rtol=1e-4, atol=1e-5)


def check_shares_is_finite(program):
    assert program([[0, 1, 3, 4, 6, 7], [2, 5]]).isfinite().all()


RIGHT = [
    ("20.own_loss", own_loss_in_place),
    ("20.own_loss", own_loss_by_gathered_counts),
    ("20.own_loss", own_loss_by_one_message),
    ("20.own_loss", own_loss_with_an_epsilon),
    ("20.own_loss", own_loss_of_the_library),
    ("20.check_shares", check_shares_by_norms_and_values),
    ("20.check_shares", check_shares_with_an_empty_rank),
    ("20.check_shares", check_shares_as_in_the_notebook),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("20.own_loss", own_loss_with_a_small_number, None),
    ("20.check_shares", check_shares_is_finite, None),
    ("20.check_shares", check_shares_of_three_in_order, "objects on each"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
