"""The order in which training sees its pictures, as a function of the seed and the step alone."""

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler

from frcnn_lite.parallel import rank_and_size, rows_of_rank


class StepOrder(Sampler[list[int]]):
    """Indices of the images of each step: every image once, shuffled, then all again in another order.

    A function of (seed, step), so that a resumed run sees what the uninterrupted one would have seen. Ranks share each
    batch out among themselves, so that it is the same batch however many they are; no image is shown twice, as those
    that `DistributedSampler` fills up with are.

    Args:
        images: how many there are.
        batch_size: of all ranks together.
        seed: of the order.
        first_step, last_step: the steps to give, [first_step, last_step).

    Raises:
        ValueError: the batch leaves a rank without an image.
    """

    def __init__(self, images: int, batch_size: int, seed: int, first_step: int, last_step: int) -> None:
        ranks = rank_and_size()[1]
        if batch_size < ranks:
            raise ValueError(f"`batch_size` must be at least {ranks}, an image for each rank, got {batch_size}")
        self.images = images
        self.batch_size = batch_size
        self.seed = seed
        self.first_step = first_step
        self.last_step = last_step

    def __len__(self) -> int:
        return self.last_step - self.first_step

    def __iter__(self) -> Iterator[list[int]]:
        epoch, order = -1, []
        for step in range(self.first_step, self.last_step):
            batch = []
            for position in range(step * self.batch_size, (step + 1) * self.batch_size):
                if position // self.images != epoch:
                    epoch = position // self.images
                    generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
                    order = torch.randperm(self.images, generator=generator).tolist()
                batch.append(order[position % self.images])
            yield [batch[row] for row in rows_of_rank(self.batch_size)]
