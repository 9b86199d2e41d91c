"""All the products weight[n] @ x[:, n], as (B, N, out)."""

from collections.abc import Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb25.cases import close

hints = (
    "Four letters: one for the batch, one for the class, one that is summed, one that comes out.",
    "The class letter is in both inputs *and* in the output: a batch axis, never summed.",
    '`torch.einsum("bni,noi->bno", x, weight)`',
)


def per_class(x: Tensor, weight: Tensor) -> Tensor:
    """Row n of x (B, N, in) times its own weight[n] (out, in), for all n at once: (B, N, out)."""
    return torch.einsum("bni,noi->bno", x, weight)


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        batch, n, fan_in, out = (random.randint(2, 6) for _ in range(4))
        x = torch.randn(batch, n, fan_in, generator=generator)
        cases.append(Guarded((x, torch.randn(n, out, fan_in, generator=generator))))
    return cases


agree = close


@wrong
def lost_class_axis(x, weight):
    """this is what einsum gives without the class letter on the right: it sums over the classes, and one vector a
    picture is left instead of one a class.

    Source: the post of this notebook, about 2019, has three letters where four are needed
    """
    return torch.einsum("bni,noi->bo", x, weight)


@wrong
def one_letter_for_batch_and_class(x, weight, letters="gn"):
    """here the batch of x and the classes of the weight share a letter, so einsum pairs picture n with class n. Give
    the batch a letter of its own.

    Source: the post of this notebook, about 2019: 'gik,gkj->gij'
    """
    b, n = letters
    return torch.einsum(f"{b}{n}i,{b}oi->{b}{n}o", x, weight)


for letters in ("bn", "nb", "cb"):
    also(one_letter_for_batch_and_class)(partial(one_letter_for_batch_and_class, letters=letters))


@wrong
def weight_read_the_other_way(x, weight):
    """here the letters read the weight as (N, in, out). It is (N, out, in), as `nn.Linear` keeps it. Only where both
    are equally large does nothing raise.
    """
    return torch.einsum("bni,nio->bno", x, weight)
