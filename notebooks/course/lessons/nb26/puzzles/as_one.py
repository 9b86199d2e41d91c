"""Return (weight, bias, index), so that `einsum("bni,noi->bno", x[:, index], weight) + bias` is the loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Nothing has to be turned: `torch.stack` gives the weights a first axis for the classes.",
    "A group's classes are neighbours. Group k is in the index as often as it has classes.",
    "`index = [group for group, n in enumerate(sizes) for _ in range(n)]`",
)


@dataclass(frozen=True)
class Computed:
    """What the three tensors compute for the rows of the case, or why they cannot."""

    out: tuple[Any, ...]
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        if not self.shape:
            return f"tensors that do not fit: {self.out[0]}"
        numbers = ", ".join(f"{number:.3f}" for number in self.out[:3])
        return f"an output {self.shape} of [{numbers}, ...]"


class _Rows(Case):
    """args: the Linears and the sizes; kwargs are not the reader's, they hold what the loop reads."""

    def call(self, function: Callable[..., Any]) -> Any:
        linears, sizes = self.args
        found = function(linears, sizes)
        if found is TODO:
            return TODO
        weight, bias, index = found
        generator = torch.Generator().manual_seed(len(linears))
        x = torch.randn(2, len(sizes), linears[0].in_features, generator=generator)
        index = torch.as_tensor(index, dtype=torch.int64)
        try:
            out = torch.einsum("bni,noi->bno", x[:, index], weight) + bias
        except (RuntimeError, IndexError) as error:
            return Computed((str(error).splitlines()[0],), ())
        return Computed(tuple(out.flatten().tolist()), tuple(out.shape))


def as_one(linears: Sequence[nn.Linear], sizes: Sequence[int]) -> tuple[Tensor, Tensor, list[int]]:
    weight = torch.stack([linear.weight for linear in linears])
    bias = torch.stack([linear.bias for linear in linears])
    index = [group for group, n in enumerate(sizes) for _ in range(n)]
    return weight, bias, index


def cases(random: Random) -> Sequence[Case]:
    """Square layers and equal groups among them, with which more mistakes go through."""
    fixed = [((3, 0, 5), 4, 6), ((2, 2, 2), 3, 3), ((1,), 2, 5), ((0, 3), 4, 2), ((4, 1), 5, 5)]
    drawn = [(tuple(random.randint(0, 4) for _ in range(random.randint(2, 5))), 3, 2) for _ in range(8)]
    torch.manual_seed(random.randrange(2**32))
    made = []
    for sizes, fan_in, out in fixed + [case for case in drawn if any(case[0])]:
        made.append(_Rows(([nn.Linear(fan_in, out) for _ in range(sum(sizes))], sizes)))
    return made


def agree(given: object, expected: Computed) -> bool:
    return (
        isinstance(given, Computed)
        and given.shape == expected.shape
        and (not given.shape or torch.allclose(torch.tensor(given.out), torch.tensor(expected.out), atol=1e-5))
    )


def _with_index(linears, index):
    weight, bias, _ = as_one(linears, [1] * len(linears))
    return weight, bias, index


@wrong
def tiled_index(linears, sizes):
    """this index goes round the groups again and again, as `Tensor.repeat` does. The classes of a group are neighbours,
    and there may be none.

    Source: Li-Wanhua/POEs issue 4, 2021, asks for repeat_interleave where repeat stands
    """
    return _with_index(linears, [c % len(sizes) for c in range(sum(sizes))])


@wrong
def empty_groups_are_forgotten(linears, sizes):
    """the index counts only the groups that have classes. A group without any keeps its number."""
    filled = [n for n in sizes if n]
    return _with_index(linears, [group for group, n in enumerate(filled) for _ in range(n)])


@wrong(recognise=lambda cases, given: _turned(given))
def turned_weights(linears, sizes):
    """the weights are turned. `nn.Linear` keeps (out, in), and the equation reads them as they are: 'noi'. With square
    layers nothing raises.
    """
    weight, bias, index = as_one(linears, sizes)
    return weight.mT, bias, index


def _turned(given: Sequence[Any]) -> bool:
    """Those of square layers fit and the others do not."""
    return all(isinstance(g, Computed) for g in given) and [bool(g.shape) for g in given[:5]] == [
        False,
        True,
        False,
        False,
        True,
    ]


@wrong
def no_bias(linears, sizes):
    """the weights and the index are right, and the bias is not that of the Linears."""
    weight, bias, index = as_one(linears, sizes)
    return weight, torch.zeros_like(bias), index


@also(no_bias)
def _(linears, sizes):
    weight, bias, index = as_one(linears, sizes)
    return weight, bias[:1].expand_as(bias), index


@wrong
def joined_without_a_class_axis(linears, sizes):
    """`torch.cat` joins the weights along an axis that they have. The equation needs a new axis for the classes, in
    front: `torch.stack` makes one.
    """
    weight, bias, index = as_one(linears, sizes)
    return weight.flatten(0, 1), bias.flatten(), index
