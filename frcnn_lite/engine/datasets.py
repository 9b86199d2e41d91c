"""From the name of a data set to its pictures, and the order in which training sees them."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils.data import Sampler

from frcnn_lite.data import DigitScenes, Split
from frcnn_lite.engine.config import TrainConfig

FOLDER_KINDS = ("voc", "coco")
TEST_SEED = 0  # not the run's: every run is judged on the same pictures


def train_pictures(config: TrainConfig) -> DigitScenes:
    """The pictures that `config` trains on. Raises as `open_dataset` does."""
    return open_dataset(config.data, "train", config.train_images, config.seed, config.image_size)


def held_out_pictures(config: TrainConfig, length: int | None = None) -> DigitScenes:
    """The unseen pictures that a run of `config` is judged on, `config.test_images` of them unless told otherwise."""
    images = config.test_images if length is None else length
    return open_dataset(config.data, "test", images, TEST_SEED, config.image_size)


def open_dataset(name: str, split: Split, length: int, seed: int, size: int) -> DigitScenes:
    """The pictures called `name`, `length` of them, `size` pixels square.

    Raises FileNotFoundError for a path that is not there and ValueError for a name that means nothing.
    """
    if name == "digits":
        return DigitScenes(split, length, seed, size=size)
    kind, _, path = name.partition(":")
    if kind in FOLDER_KINDS and not (path and Path(path).exists()):
        raise FileNotFoundError(f"data {name!r}: no such file or directory: {path!r}")
    if kind in FOLDER_KINDS:
        raise ValueError(f"data {name!r}: {kind} annotations cannot be read yet; 'digits' needs no files")
    raise ValueError(f"data must be 'digits', got {name!r}")


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
