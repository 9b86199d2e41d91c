"""A data set by which the statement of notebook 28 on workers is tested: which random numbers they draw."""

import random
from typing import NamedTuple

import torch
from torch.utils.data import Dataset, get_worker_info


class Draw(NamedTuple):
    """The first numbers of a worker's three global generators, and which worker drew them (-1: the parent)."""

    worker: int
    python: float
    numpy: float
    torch: float


class WorkerDraws(Dataset[Draw]):
    """Item i is what the three generators give in the process that loads it.

    `DataLoader(WorkerDraws(4), batch_size=None, num_workers=2)` shows which generators are seeded, and how.
    """

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Draw:
        import numpy

        worker = get_worker_info()
        drawn = (random.random(), float(numpy.random.random()), torch.rand(()).item())
        return Draw(-1 if worker is None else worker.id, *drawn)
