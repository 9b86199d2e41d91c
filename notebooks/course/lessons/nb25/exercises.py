"""Exercises of notebook 25: which group a class reads, one product for all classes, and a bias stored the other way."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case, Exercise, Mistake
from course.kit.learn.guarded import Guarded


def class_index(nclasses_per_group: Sequence[int]) -> list[int]:
    """For every class, in order, the group it reads."""
    return [group for group, n in enumerate(nclasses_per_group) for _ in range(n)]


def per_class(x: Tensor, weight: Tensor) -> Tensor:
    """Row n of x (B, N, in) times its own weight[n] (out, in), for all n at once: (B, N, out)."""
    return torch.einsum("bni,noi->bno", x, weight)


def add_bias(out: Tensor, bias: Tensor) -> Tensor:
    """`out` (B, N, C) plus a bias that the post stores as (C, N): one number for each class and channel."""
    return out + bias.T


def _index_cases(random: Random) -> Sequence[Case]:
    fixed = [(3, 0, 5), (2, 2, 2), (1,), (4, 1), (0, 3)]
    drawn = [tuple(random.randint(0, 6) for _ in range(random.randint(2, 6))) for _ in range(20)]
    return [Case((sizes,)) for sizes in fixed + [sizes for sizes in drawn if any(sizes)]]


def _product_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for _ in range(6):
        batch, n, fan_in, out = (random.randint(2, 6) for _ in range(4))
        x = torch.randn(batch, n, fan_in, generator=generator)
        cases.append(Guarded((x, torch.randn(n, out, fan_in, generator=generator))))
    return cases


def _bias_cases(random: Random) -> Sequence[Case]:
    """As many classes as channels, the one case in which nothing raises."""
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    sizes = [random.randint(2, 64) for _ in range(6)]
    return [Guarded((torch.randn(3, n, n, generator=generator), torch.randn(n, n, generator=generator))) for n in sizes]


def _close(given: object, expected: Tensor) -> bool:
    return (
        isinstance(given, Tensor)
        and given.shape == expected.shape
        and torch.allclose(given, expected, rtol=1e-4, atol=1e-5)
    )


EXERCISES = (
    Exercise(
        key="25.class_index",
        task="For (3, 0, 5): [0, 0, 0, 2, 2, 2, 2, 2].",
        reference=class_index,
        cases=_index_cases,
        agree=same_values,
        hints=(
            "Group k appears as often as it has classes, all its classes side by side.",
            "Two loops, the outer one over groups; or `torch.repeat_interleave`.",
            "`[group for group, n in enumerate(sizes) for _ in range(n)]`",
        ),
        mistakes=(
            Mistake(
                "tiled",
                "this index goes round the groups again and again, as `Tensor.repeat` does. The classes of a group are "
                "neighbours, and there may be none.",
                "Li-Wanhua/POEs issue 4, 2021, asks for repeat_interleave where repeat stands",
                answers=(lambda sizes: [c % len(sizes) for c in range(sum(sizes))],),
            ),
        ),
    ),
    Exercise(
        key="25.per_class",
        task="All the products weight[n] @ x[:, n], as (B, N, out).",
        reference=per_class,
        cases=_product_cases,
        agree=_close,
        hints=(
            "Four letters: one for the batch, one for the class, one that is summed, one that comes out.",
            "The class letter stands in both inputs *and* in the output: a batch axis, never summed.",
            '`torch.einsum("bni,noi->bno", x, weight)`',
        ),
        mistakes=(
            Mistake(
                "lost class axis",
                "this is what einsum gives without the class letter on the right: it sums over the classes, and one "
                "vector a picture is left instead of one a class.",
                "the post of this notebook, about 2019, has three letters where four are needed",
                answers=(lambda x, weight: torch.einsum("bni,noi->bo", x, weight),),
            ),
            Mistake(
                "one letter for batch and class",
                "here the batch of x and the classes of the weight share a letter, so einsum pairs picture n with "
                "class n. Give the batch a letter of its own.",
                "the post of this notebook, about 2019: 'gik,gkj->gij'",
                answers=tuple(
                    lambda x, weight, b=b, n=n: torch.einsum(f"{b}{n}i,{b}oi->{b}{n}o", x, weight)
                    for b, n in ("gn", "bn", "nb", "cb")
                ),
            ),
        ),
    ),
    Exercise(
        key="25.add_bias",
        task="Add a bias stored as (channels, classes) to an output (B, classes, channels).",
        reference=add_bias,
        cases=_bias_cases,
        agree=_close,
        hints=(
            "Name the axes of both tensors. Which axis of the bias belongs to which axis of the output?",
            "With 64 classes of 64 channels every order fits. Only one is right.",
            "`out + bias.T`",
        ),
        mistakes=(
            Mistake(
                "transposed",
                "this is the bias as it is stored: class 3, channel 5 has the number of class 5, channel 3. It raises "
                "for every other shape, and passes when there are as many classes as channels.",
                "the post of this notebook, about 2019, stores its bias that way round",
                answers=(lambda out, bias: out + bias,),
            ),
        ),
    ),
)
