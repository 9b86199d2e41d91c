"""From the name of a data set to its pictures, and to what a detector for them looks like."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frcnn_lite.data import (
    AnnotatedPictures,
    DataSource,
    Defect,
    DetectionDataset,
    DigitScenes,
    Handling,
    Letterbox,
    LetterboxedScenes,
    choose_splits,
    describe_defects,
    fit_detector,
)
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.engine.config import TrainConfig

TEST_SEED = 0  # not the run's: every run is judged on the same pictures
KEEP_BYTES = 2**30  # of finished pictures in memory, over all processes of this machine that load them
# Of the pictures of a folder: most things have no writing on them.
VIEWS: dict[str, Any] = {"flip": 0.5, "zoom": 0.25, "light": 0.2}


def train_pictures(config: TrainConfig) -> DetectionDataset:
    """The pictures that `config` trains on, of one size. Raises ValueError or FileNotFoundError that names the data."""
    if config.data == "digits":
        return _digits("train", config.train_images, config.seed, config)
    return _on_canvas(choose_splits(config.data, config.test_data)[0], config.train_images, config, config.workers)


def held_out_pictures(config: TrainConfig, length: int | None = None) -> DetectionDataset:
    """The unseen pictures that a run of `config` is judged on, `config.test_images` of them unless told otherwise."""
    images = config.test_images if length is None else length
    if config.data == "digits" and not config.test_data:
        return _digits("test", images, TEST_SEED, config)
    named = DataSource.parse(config.test_data) if config.test_data else None
    test = named if named and named.split else choose_splits(config.data, config.test_data)[1]
    return _on_canvas(test, images, config)


def fit_to_data(config: TrainConfig, *, keep_image_size: bool = False) -> TrainConfig:
    """`config` with all that follows from its data: splits, numbers of pictures, classes, their size, the anchors.

    keep_image_size: `config.image_size` is a choice, not to be replaced. Digit scenes are what the defaults were made
    for, and come back as they are. Raises ValueError, where not one box is left to train on too, or FileNotFoundError.
    """
    if config.data == "digits":
        return config
    train, test = choose_splits(config.data, config.test_data)
    pictures, defects = train.read()
    if not pictures:
        raise _unusable(train, defects)
    config = replace(
        config,
        data=str(train),
        test_data=str(test),
        class_names=train.class_names(pictures),
        train_images=min(config.train_images, len(pictures)),
        test_images=min(config.test_images, len(test.names())),
        **VIEWS,
    )
    found = _annotated(train, config.train_images, config)
    picture_sizes, boxes, owner = found.boxes()
    if len(boxes) == 0:
        raise ValueError(f"{train}: there is no box to train on in {len(pictures)} pictures")
    fit = fit_detector(
        picture_sizes,
        boxes,
        owner,
        canvas=config.image_size if keep_image_size else None,
        anchor_count=len(config.model.anchor_sizes) if config.model.fpn else None,  # so many a level of the pyramid
    )
    model = replace(
        _with_room(config.model, most=int(owner.bincount().max())),
        num_classes=len(config.class_names),
        anchor_sizes=fit.anchors.sizes,
        anchor_ratios=fit.anchors.ratios,
    )
    return replace(config, image_size=fit.canvas, model=model)


def _with_room(model: FasterRCNNConfig, most: int) -> FasterRCNNConfig:
    """The detector with room for pictures of `most` objects, and for as many mistakes, in what it samples and finds."""
    proposals, detections = max(model.proposals, 2 * most), max(model.detections, 2 * most)
    return replace(
        model,
        proposals=proposals,
        pre_nms_proposals=max(model.pre_nms_proposals, 4 * proposals),
        rpn_samples=max(model.rpn_samples, 4 * most),  # an object has several anchors
        roi_samples=max(model.roi_samples, 2 * most),
        detections=detections,
        pre_nms_detections=max(model.pre_nms_detections, 4 * detections),
    )


def _digits(split: str, length: int, seed: int, config: TrainConfig) -> DigitScenes:
    height, width = config.image_size
    if height != width:
        raise ValueError(f"image_size of digit scenes must be square, got {height} x {width}")
    return DigitScenes("train" if split == "train" else "test", length, seed, size=height)


def _on_canvas(source: DataSource, length: int, config: TrainConfig, workers: int = 0) -> DetectionDataset:
    """The pictures on one canvas, for `workers` processes a rank, each of which keeps its share of what may be kept."""
    found = _annotated(source, length, config)
    processes = max(1, workers) * int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return LetterboxedScenes(found, Letterbox(*config.image_size), keep_bytes=KEEP_BYTES // processes)


def _annotated(source: DataSource, length: int, config: TrainConfig) -> AnnotatedPictures:
    """The first `length` pictures; what is wrong with them is said in a warning, or in an error if none is left."""
    pictures, defects = source.read()
    found = AnnotatedPictures(pictures[:length], config.class_names, Handling.parse(config.handle), defects)
    if len(found) == 0:
        raise _unusable(source, found.defects)
    if found.defects:
        # The location of this line, not of the caller's, so that opening the same data again does not say it again
        warnings.warn(f"{source} has defects\n{describe_defects(found.defects)}", stacklevel=1)
    return found


def _unusable(source: DataSource, defects: Sequence[Defect]) -> ValueError:
    return ValueError(
        f"{source}: not one of its {len(source.names())} pictures can be used\n{describe_defects(defects)}"
    )
