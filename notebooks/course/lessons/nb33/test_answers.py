"""Answers to the exercises of notebook 33: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong
from torch import nn


def by_pairs(same):
    return lambda found, wanted: all(bool(same(mine, its)) for mine, its in zip(found, wanted, strict=True))


def by_outputs_on_the_cpu(make):
    net, x = make(), torch.randn(4, 16)
    net.cuda()
    one = net(x.cuda()).cpu()
    two = nn.DataParallel(net, [0, 1])(x.cuda()).cpu()
    assert torch.allclose(one, two, atol=1e-5)


RIGHT = [
    ("33.check_scores", by_outputs_on_the_cpu),
    (
        "33.same_gradients",
        by_pairs(lambda mine, its: torch.allclose(mine, its, rtol=0, atol=1.00001e-5 * its.abs().max().item())),
    ),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("33.same_gradients", by_pairs(lambda mine, its: abs(mine.norm() - its.norm()) <= 1e-5 * its.norm()), None),
    ("33.same_gradients", by_pairs(lambda mine, its: (mine - its).norm() <= 1e-5 * its.norm()), None),
    ("33.same_gradients", by_pairs(lambda mine, its: (mine - its).max() <= 1e-5 * its.abs().max()), None),
    ("33.same_gradients", by_pairs(lambda mine, its: (mine - its).abs().mean() <= 1e-5 * its.abs().max()), None),
    ("33.same_gradients", by_pairs(lambda mine, its: (mine - its).abs().max() <= 1e-5 * its.abs().mean()), None),
    ("33.same_gradients", by_pairs(lambda mine, its: (mine - its).abs().max() <= 1e-5 * its.max()), None),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
