"""Join `shards`, the state dicts of rank 0, 1, ...; `plan` says for each name how it was cut: 0, 1, None or "qkv"."""

from collections.abc import Mapping, Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.guarded import Guarded
from course.kit.learn.puzzle import also, wrong

hints = (
    "Three kinds of names: cut along a dimension, whole on every rank, and three tensors in one.",
    'For "qkv": `chunk(3)` gives the three parts of a rank. Join all q, then all k, then all v.',
    '`torch.cat([torch.cat(parts) for parts in zip(*(shard[name].chunk(3) for shard in shards))])` for "qkv".',
)

Plan = Mapping[str, int | str | None]


def merge(shards: Sequence[Mapping[str, Tensor]], plan: Plan) -> dict[str, Tensor]:
    """The whole state dict."""
    return {name: _joined([shard[name] for shard in shards], plan[name]) for name in plan}


def _joined(parts: Sequence[Tensor], cut: int | str | None) -> Tensor:
    if cut is None:
        return parts[0]
    if cut == "qkv":
        return torch.cat([torch.cat(some) for some in zip(*(part.chunk(3) for part in parts), strict=True)])
    return torch.cat(list(parts), int(cut))


def cut(whole: Mapping[str, Tensor], plan: Plan, ranks: int) -> list[dict[str, Tensor]]:
    """The shards of a whole state dict, which `merge` joins again."""

    def part(tensor: Tensor, how: int | str | None, rank: int) -> Tensor:
        if how is None:
            return tensor.clone()
        if how == "qkv":
            return torch.cat([some.chunk(ranks)[rank] for some in tensor.chunk(3)])
        return tensor.chunk(ranks, int(how))[rank].clone()

    return [{name: part(tensor, plan[name], rank) for name, tensor in whole.items()} for rank in range(ranks)]


def cases(random: Random) -> Sequence[Case]:
    """A block of attention and two linear layers, with square weights, on two to four ranks."""
    found: list[Case] = []
    for ranks in (2, 2, 3, 4):
        width = 12 * random.randint(1, 3)
        shapes = {"qkv.weight": (3 * width, width), "qkv.bias": (3 * width,), "out.weight": (width, width)}
        shapes |= {"out.bias": (width,), "up.weight": (width, width), "up.bias": (width,)}
        plan: Plan = {
            "qkv.weight": "qkv",
            "qkv.bias": "qkv",
            "out.weight": 1,
            "out.bias": None,
            "up.weight": 0,
            "up.bias": 0,
        }
        torch.manual_seed(random.randrange(2**32))
        found.append(Guarded((cut({name: torch.rand(shape) for name, shape in shapes.items()}, plan, ranks), plan)))
    return found


def _equal(given: object, expected: Mapping[str, Tensor]) -> bool:
    return (
        isinstance(given, Mapping)
        and given.keys() == expected.keys()
        and all(
            isinstance(given[name], Tensor) and torch.equal(given[name], tensor) for name, tensor in expected.items()
        )
    )


agree = _equal


@wrong
def end_to_end(shards, plan):
    """this is what plain `cat` gives for "qkv": the shape is right, and the rows are in the order q, k, v of rank 0, q,
    k, v of rank 1. The layer takes the first third of them for q.
    """
    return {
        name: shards[0][name]
        if how is None
        else torch.cat([shard[name] for shard in shards], 0 if how == "qkv" else how)
        for name, how in plan.items()
    }


@wrong
def along_the_rows_always(shards, plan):
    """this is what joining everything along the rows gives. A row-parallel weight was cut through its columns, and a
    tensor that is whole on every rank is not to be joined at all.
    """
    return {name: torch.cat([shard[name] for shard in shards]) for name in plan}


@wrong
def zero_is_false(shards, plan):
    """this is what `if cut` gives: dimension 0 counts as false, so those tensors are taken from one rank and are too
    short. Ask `is None`.
    """
    return {name: tensor if plan[name] else shards[0][name] for name, tensor in merge(shards, plan).items()}


@wrong
def added_up(shards, plan):
    """what is whole on every rank was added up here. A bias of a row-parallel layer is the same on all ranks: take it
    from one of them.
    """
    return merge(shards, plan) | {n: sum(shard[n] for shard in shards) for n, how in plan.items() if how is None}


@also(added_up)
def added_up_and_end_to_end(shards, plan):
    return end_to_end(shards, plan) | {n: sum(shard[n] for shard in shards) for n, how in plan.items() if how is None}


@wrong
def split_by_ranks(shards, plan):
    """each rank's fused part is three blocks, q, k and v, however many ranks there are. This cuts it into as many
    blocks as there are ranks.
    """
    parts = {name: [shard[name].chunk(len(shards)) for shard in shards] for name, how in plan.items() if how == "qkv"}
    return merge(shards, plan) | {
        name: torch.cat([torch.cat(some) for some in zip(*blocks, strict=True)]) for name, blocks in parts.items()
    }
