"""From the name of a data set to its pictures."""

from pathlib import Path

from frcnn_lite.data import DetectionDataset, DigitScenes, Split
from frcnn_lite.engine.config import TrainConfig

FOLDER_KINDS = ("voc", "coco")
TEST_SEED = 0  # not the run's: every run is judged on the same pictures


def train_pictures(config: TrainConfig) -> DetectionDataset:
    """The pictures that `config` trains on. Raises as `open_dataset` does."""
    return open_dataset(config.data, "train", config.train_images, config.seed, config.image_size)


def held_out_pictures(config: TrainConfig, length: int | None = None) -> DetectionDataset:
    """The unseen pictures that a run of `config` is judged on, `config.test_images` of them unless told otherwise."""
    images = config.test_images if length is None else length
    return open_dataset(config.data, "test", images, TEST_SEED, config.image_size)


def open_dataset(name: str, split: Split, length: int, seed: int, size: int) -> DetectionDataset:
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
