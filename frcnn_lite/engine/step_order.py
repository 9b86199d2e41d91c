"""The order in which training sees its pictures, as a function of the seed and the step alone."""

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler


class StepOrder(Sampler[list[int]]):
    """Indices of the images of each step: every image once, shuffled, then all again in another order.

    A function of (seed, step), so that a resumed run sees what the uninterrupted one would have seen.
    """

    def __init__(self, images: int, batch_size: int, seed: int, first_step: int, last_step: int) -> None:
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
            yield batch
