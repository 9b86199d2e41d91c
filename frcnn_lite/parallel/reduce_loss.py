"""One number out of the sums and counts that many images, on many devices, contributed."""

from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

Tree = TypeVar("Tree")  # a tensor, or dicts, lists and tuples of tensors


def reduce_loss(sums: Tree, counts: Tree) -> Tree:
    """Losses over all images: the sum of `sums` divided by the sum of `counts`, or by 1 where nothing was counted.

    Dividing once, at the end, is what makes the result independent of how the batch was split. If device k holds sum
    s_k and count n_k, the loss of the whole batch is (s_1 + s_2) / (n_1 + n_2). The mean of the devices' own means,
    (s_1 / n_1 + s_2 / n_2) / 2, equals it in general only when n_1 = n_2: with 9 rows on 2 devices (5 and 4), each row
    of the second device would weigh 25 % more than a row of the first. The same holds for gradients, which are linear
    in the loss. On ranks, as with DDP, no process has the images of all: there it is `reduce_loss_over_ranks`.

    Args:
        sums: a tensor (B,), or a pytree (dicts, lists, tuples) of such tensors, with one entry per image of *all*
            devices, such as `nn.DataParallel` gathers.
        counts: the same structure. They need no gradient.

    Returns:
        The same structure with 0-d tensors. Add them up for the loss to call `backward()` on.

    Raises:
        ValueError: the structures differ.
    """
    return tree_map(_ratio, sums, counts)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    return total.sum() / torch.clamp(count.sum(), min=1)
