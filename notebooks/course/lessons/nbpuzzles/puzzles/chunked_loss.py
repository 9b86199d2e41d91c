"""Return the mean cross entropy of `hidden @ weight.T`, of shape (words, vocabulary), against `labels`. Target: at
the worst moment two and a half times the bytes of the logits of a quarter of the words. (Only the loss is asked for,
without gradients.)
"""

from collections.abc import Sequence
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nbpuzzles.costs import InMemory, right_and_cheap, right_but_dear

hints = (
    "The loss is a sum over words, divided by their count. Need all logits be there at once?",
    "Compute the logits of a few words, the sum of their losses with `reduction='sum'`, and forget them.",
    "Loop over `zip(hidden.chunk(4), labels.chunk(4))`, add up, and divide by `len(labels)` at the end.",
)


def cases(random: Random) -> Sequence[Case]:
    torch.manual_seed(random.randrange(2**31))
    drawn = []
    for words, width, vocabulary in ((66, 8, 500), (32, 4, 1000), (4 * random.randint(9, 99) + 1, 4, 700)):
        hidden, weight = torch.randn(words, width), torch.randn(vocabulary, width)
        labels = torch.randint(vocabulary, (words,))
        drawn.append(InMemory((hidden, weight, labels), peak=10 * words // 4 * vocabulary))
    return drawn


def chunked_loss(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    total = hidden.new_zeros(())
    for some, wanted in zip(hidden.chunk(4), labels.chunk(4), strict=True):
        total += F.cross_entropy(some @ weight.T, wanted, reduction="sum")
    return total / len(labels)


agree = right_and_cheap


@wrong(recognise=lambda cases, given: right_but_dear(cases, given, chunked_loss))
def all_logits(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """the loss is right, and too many logits were there at once. For a vocabulary of 128,000 they are the largest
    tensor of a training, and `cross_entropy` makes a second one of their size.
    """
    return F.cross_entropy(hidden @ weight.T, labels)


@wrong
def not_divided(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """this is a sum of means of the chunks. Add up sums, and divide by the number of words once."""
    return chunked_loss(hidden, weight, labels) * 4


@wrong
def mean_of_means(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """this is the mean of the chunks' means. The last chunk can have fewer words, which weigh more. Add up sums."""
    pairs = zip(hidden.chunk(4), labels.chunk(4), strict=True)
    return torch.stack([F.cross_entropy(some @ weight.T, wanted) for some, wanted in pairs]).mean()


@wrong
def the_rest_is_left_out(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """words are left out where their number does not divide by four."""
    size = len(hidden) // 4
    return chunked_loss(hidden[: 4 * size], weight, labels[: 4 * size])


@also(the_rest_is_left_out)
def divided_by_all(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    return the_rest_is_left_out(hidden, weight, labels) * (len(labels) // 4 * 4) / len(labels)
