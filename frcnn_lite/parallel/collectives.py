"""Messages between ranks, in forms that also work in a process that is alone.

A collective is a call that every rank of the group makes, in the same order. In a single process each function returns
its argument unchanged.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.utils._pytree import tree_flatten, tree_unflatten

T = TypeVar("T")
Tree = TypeVar("Tree")  # a tensor, or dicts, lists and tuples of tensors


def sum_over_ranks(tensor: Tensor) -> Tensor:
    """The sum of all ranks' tensors, which have one shape, on each rank. Without a gradient."""
    total = tensor.detach().clone()
    if _rank_and_size()[1] > 1:
        distributed.all_reduce(total)
    return total


def reduce_loss_over_ranks(sums: Tree, counts: Tree) -> tuple[Tree, Tree]:
    """`reduce_loss` where each rank holds some of the images: losses to call backward() on, and losses to log.

    DDP averages gradients over the W ranks. A rank's own mean would weigh an object more on the rank that has fewer of
    them, so every rank divides its own sum by the count of *all* ranks, and multiplies by W what DDP will divide by it:
    after backward() each rank has the gradients of one process with the whole batch.

    Args:
        sums: a tensor (B,), or a pytree of such tensors, with an entry for each image of this rank.
        counts: the same structure.

    Returns:
        (own, total), the structure with 0-d tensors twice: `own` has a gradient, and its mean over the ranks is
        `total`, which has none and is the same number on every rank.
    """
    leaves, structure = tree_flatten(sums)
    own_sums = torch.stack([leaf.sum() for leaf in leaves])
    own_counts = torch.stack([leaf.sum() for leaf in tree_flatten(counts)[0]]).to(own_sums)
    total_sums, total_counts = sum_over_ranks(torch.stack([own_sums.detach(), own_counts]))  # one message for all
    divisor = total_counts.clamp(min=1)
    own = own_sums * _rank_and_size()[1] / divisor
    return tree_unflatten([*own], structure), tree_unflatten([*(total_sums / divisor)], structure)


def any_rank(flag: bool) -> bool:
    """Whether `flag` is true on at least one rank: how ranks agree to stop after the same step."""
    return bool(sum_over_ranks(torch.tensor(float(flag), device=_meeting_device())) > 0)


def rows_of_rank(rows: int) -> range:
    """Which of `rows` are this rank's: every W-th. Each row belongs to one rank, and none is there twice.

    `DistributedSampler` repeats rows until all ranks have as many; an evaluation then counts some pictures twice.
    """
    rank, size = _rank_and_size()
    return range(rank, rows, size)


def merge_rows(own: list[T]) -> list[T]:
    """The results of all ranks for their `rows_of_rank`, in the order of the rows, on every rank. Travels by pickle."""
    size = _rank_and_size()[1]
    if size == 1:
        return own
    parts: list[Any] = [None] * size
    distributed.all_gather_object(parts, own)
    return [parts[row % size][row // size] for row in range(sum(map(len, parts)))]


def from_main_rank(make: Callable[[], T]) -> T:
    """`make()`, called on rank 0 and sent to all, by pickle; what it raises there is raised on every rank.

    For what must happen once, such as creating a directory: an error on rank 0 alone would leave the others waiting.
    """
    rank, size = _rank_and_size()
    if size == 1:
        return make()
    message: list[Any] = [None, None]
    if rank == 0:
        try:
            message[0] = make()
        except Exception as error:
            message[1] = error
    distributed.broadcast_object_list(message, src=0)
    if message[1] is not None:
        raise message[1]
    return message[0]


def _rank_and_size() -> tuple[int, int]:
    """This process's number and how many there are: (0, 1) without a process group."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _meeting_device() -> torch.device:
    """The device that tensors of a message must be on: NCCL takes GPU tensors alone."""
    if _rank_and_size()[1] > 1 and distributed.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
