"""Answers to the puzzles with a target: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
import torch.nn.functional as F
from answers import all_right, all_wrong
from torch import distributed

pytestmark = pytest.mark.virtual_gpus(2)


def each_quarter(hidden, weight, labels):
    losses = [
        F.cross_entropy(h @ weight.T, y, reduction="sum") for h, y in zip(hidden.split(4), labels.split(4), strict=True)
    ]
    return sum(losses) / len(labels)


def with_a_list_of_losses(hidden, weight, labels):
    pairs = zip(hidden.chunk(4), labels.chunk(4), strict=True)
    return torch.cat([F.cross_entropy(h @ weight.T, y, reduction="none") for h, y in pairs]).mean()


def by_three_terms(a, b):
    return (a.square().sum(1)[:, None] - 2 * a @ b.T + b.square().sum(1)).argmin(1)


def in_place(average, weights):
    average.mul_(0.9).add_(weights, alpha=0.1)


def point_by_point(a, b):
    return torch.stack([(point - b).square().sum(1).argmin() for point in a])


def by_async(gradients):
    bucket = torch.cat([gradient.reshape(-1) for gradient in gradients]) / distributed.get_world_size()
    distributed.all_reduce(bucket, async_op=True).wait()
    pieces = bucket.split([gradient.numel() for gradient in gradients])
    return tuple(piece.reshape(gradient.shape) for piece, gradient in zip(pieces, gradients, strict=True))


def gathered_lists(x, weight):
    """By `all_gather`, which takes a list, in place of `all_gather_into_tensor`."""
    own = x @ weight
    parts = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, own)
    return torch.cat(parts, dim=1)


def wishes_on_the_cpu(total, count, stop):
    numbers = torch.tensor([total.item(), count.item(), float(stop)])
    distributed.all_reduce(numbers)
    return numbers[0] / numbers[1], bool(numbers[2] > 0)


def gathered_means(x):
    """Two numbers for each feature and the count, gathered in place of added up."""
    own = torch.cat([x.sum(0), x.square().sum(0), x.new_tensor([len(x)])])
    whole = own.new_empty(2, len(own))
    distributed.all_gather_into_tensor(whole, own)
    sums = whole.sum(0)
    mean = sums[:3] / sums[-1]
    return mean, sums[3:-1] / sums[-1] - mean**2


def broadcasts(whole):
    distributed.broadcast(whole, 0)
    return whole


def one_rank_leaves(whole):
    if distributed.get_rank():
        distributed.all_reduce(whole)
    return whole[: len(whole) // 2]


test_right = all_right(
    [
        ("puzzles.chunked_loss", each_quarter),
        ("puzzles.chunked_loss", with_a_list_of_losses),
        ("puzzles.nearest", by_three_terms),
        ("puzzles.follow", in_place),
        ("puzzles.nearest", point_by_point),
        ("puzzles.average_gradients", by_async),
        ("puzzles.batch_statistics", gathered_means),
        ("puzzles.whole_output", gathered_lists),
    ]
)
test_wrong = all_wrong(
    [
        ("puzzles.own_part", broadcasts, None),
        ("puzzles.loss_and_stop", wishes_on_the_cpu, None),
        ("puzzles.own_part", one_rank_leaves, None),
        (
            "puzzles.chunked_loss",
            lambda hidden, weight, labels: F.cross_entropy(hidden @ weight.T, labels),
            "all logits",
        ),
        ("puzzles.follow", lambda average, weights: average.copy_(average.lerp(weights, 0.1)), "with new tensors"),
    ]
)
