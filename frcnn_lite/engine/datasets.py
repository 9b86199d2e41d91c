"""From the names of data sets to their pictures, each file of which is read once."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from frcnn_lite.data import (
    AnnotatedPictures,
    DataSource,
    Defect,
    DetectionDataset,
    DigitScenes,
    Handling,
    Letterbox,
    LetterboxedScenes,
    Picture,
    Room,
    choose_splits,
    describe_defects,
)
from frcnn_lite.engine.config import TrainConfig

TEST_SEED = 0  # not the run's: every run is judged on the same pictures
KEEP_BYTES = 2**30  # of finished pictures in memory, over all processes of this machine that load them

T = TypeVar("T")


class Pictures:
    """The pictures that configurations name. What was read is remembered: change a file, and make a new `Pictures`.

    `resolve`, `fill_minutes` and `train` share one, so that a run parses each annotation once and looks through each
    image once, however many steps of its preparation ask for them.
    """

    def __init__(self) -> None:
        self._remembered: dict[Any, Any] = {}

    def train(self, config: TrainConfig) -> DetectionDataset:
        """The pictures that `config` trains on, of one size. Raises ValueError, FileNotFoundError naming the data."""
        if config.data == "digits":
            return _digits("train", config.train_images, config.seed, config)
        return self._on_canvas(choose_splits(config.data, config.test_data)[0], config.train_images, config)

    def held_out(self, config: TrainConfig, length: int | None = None) -> DetectionDataset:
        """The unseen pictures that a run is judged on.

        Args:
            config: the run's.
            length: how many at most; the default is `config.test_images`.

        Raises:
            ValueError, FileNotFoundError: as `train`.
        """
        images = config.test_images if length is None else length
        if config.data == "digits" and not config.test_data:
            return _digits("test", images, TEST_SEED, config)
        named = DataSource.parse(config.test_data) if config.test_data else None
        test = named if named and named.split else choose_splits(config.data, config.test_data)[1]
        return self._on_canvas(test, images, config)

    def annotations(self, source: DataSource) -> list[Picture]:
        """The annotated pictures of `source` as they are. Raises ValueError where not one can be read."""
        pictures, defects = self._read(source)
        if not pictures:
            raise _unusable(source, defects)
        return pictures

    def annotated(
        self, source: DataSource, length: int, class_names: tuple[str, ...], handle: tuple[str, ...]
    ) -> AnnotatedPictures:
        """Pictures, looked through; what is wrong with them is said in a warning.

        Args:
            source: where they are.
            length: how many at most, from the first on.
            class_names: the classes, by label.
            handle: what to do about defects, as in `TrainConfig.handle`.

        Raises:
            ValueError: none is left.
        """

        def look_through() -> AnnotatedPictures:
            pictures, defects = self._read(source)
            found = AnnotatedPictures(pictures[:length], class_names, Handling.parse(handle), defects)
            if len(found) == 0:
                raise _unusable(source, found.defects)
            # The location of these lines, not of the caller's, so that opening the same data again says it once
            if found.defects and len(found) == len(pictures[:length]) and {d.kind for d in found.defects} == {"empty"}:
                said = f"{len(found.defects)} of {len(found)} pictures have no objects, and are background"
                warnings.warn(f"{source}: {said}", stacklevel=1)
            elif found.defects:
                left_out = min(length, len(source.names())) - len(found)
                said = (
                    f"{source} has defects\n{describe_defects(found.defects)}\npictures that are left out: {left_out}"
                )
                warnings.warn(said, stacklevel=1)
            for hint in found.hints:
                warnings.warn(f"{source}: {hint}", stacklevel=1)
            return found

        return self._once(("annotated", source, length, class_names, handle), look_through)

    def _read(self, source: DataSource) -> tuple[list[Picture], list[Defect]]:
        return self._once(("read", source), source.read)

    def _on_canvas(self, source: DataSource, length: int, config: TrainConfig) -> DetectionDataset:
        # Each worker has a share to keep finished pictures in, and so has the process that judges.
        processes = (config.workers + 1) * int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        room = self._once(("room", processes), lambda: Room(KEEP_BYTES // processes))
        letterbox = Letterbox(*config.image_size)
        key = (source, length, config.class_names, config.handle)
        return self._once(
            ("on canvas", *key, letterbox), lambda: LetterboxedScenes(self.annotated(*key), letterbox, room)
        )

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self._remembered:
            self._remembered[key] = make()
        return self._remembered[key]


def _digits(split: str, length: int, seed: int, config: TrainConfig) -> DigitScenes:
    height, width = config.image_size
    if height != width:
        raise ValueError(f"`image_size` of digit scenes must be square, got {height} x {width}")
    return DigitScenes("train" if split == "train" else "test", length, seed, size=height)


def _unusable(source: DataSource, defects: Sequence[Defect]) -> ValueError:
    return ValueError(
        f"{source}: not one of its {len(source.names())} pictures can be used\n{describe_defects(defects)}"
    )
