"""From what was chosen of a run to its whole configuration: what the data decides, and how many steps there are."""

import math
import statistics
import sys
import time
from dataclasses import fields, replace
from typing import Any

import torch

from frcnn_lite.data import choose_splits, collate, fit_detector
from frcnn_lite.data.statistics import SIDES, TRAINED_SIDE
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.engine.config import TrainConfig
from frcnn_lite.engine.datasets import Pictures
from frcnn_lite.engine.start import Start, read_start, weights_for
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.engine.trainer import Trainer
from frcnn_lite.parallel import from_main_rank

# What suits pictures of one's own: they are few, which is why they are varied, and most things have no writing on them.
OWN_PICTURES: dict[str, Any] = {
    "flip": 0.5,
    "zoom": 0.25,
    "light": 0.2,
    "train_images": sys.maxsize,
    "test_images": sys.maxsize,
}
PYRAMID_LEVELS = {"resnet": 5, "mobilenet": 3}  # of torchvision's feature pyramids, the pooled last one included
DIGIT_SCENES = 200  # whose boxes a pyramid's anchors are fitted to

WARMUP_STEPS = 3  # the first steps choose algorithms and fill caches
TIMED_STEPS = 12


def resolve(pictures: Pictures | None = None, *, epochs: float | None = None, **given: Any) -> TrainConfig:
    """The whole configuration of a run, from what was chosen of it.

    What is not given follows from the data where it can (splits, numbers of pictures, classes, their size, views,
    anchors, room for as many objects as a picture has), from `weights` (which detector they are of, and lower learning
    rates), and else is the default.

    Args:
        pictures: shared with `train`, so that it reads no file again.
        epochs: how often every picture is shown, in the place of `steps`.
        given: fields of `TrainConfig`, and of `FasterRCNNConfig` by their own names.

    Raises:
        TypeError: a name is not a field.
        ValueError: a value is wrong, the weights do not fit, or the data has not one box to train on.
        FileNotFoundError: there is no such data, or no such file of weights.
    """
    names = {field.name for field in fields(FasterRCNNConfig)}
    chosen = {name: given.pop(name) for name in names & given.keys()}
    start = read_start(given["weights"]) if given.get("weights") else Start({}, {})
    model = replace(given.pop("model", FasterRCNNConfig()), **{**start.plan, **chosen})
    chosen = {name: value for name, value in start.plan.items() if name.startswith("anchor_")} | chosen
    given = {**start.run, **given}
    own = given.get("data", "digits") != "digits"
    config = TrainConfig(**{**(OWN_PICTURES if own else {}), **given, "model": model})
    follows: dict[str, Any] = {}
    if own:
        follows = _from_folder(config, pictures or Pictures(), "image_size" in given)
    elif model.fpn:
        follows = {"model": _with_anchors(model, *_boxes_of_digits(config), config.image_size)[0]}
    # A mirror image is only known to a detector that was shown some.
    judged = {"mirrored": config.flip > 0 or model.mirrored}
    follows["model"] = replace(follows.get("model", model), **{**judged, **chosen})
    if epochs is not None:
        follows["steps"] = steps_in_epochs(epochs, replace(config, **follows))
    config = replace(config, **follows)
    if config.model.backbone != "lite" or config.weights:
        with torch.device("meta"):
            model = FasterRCNN(config.model)
        if config.weights:
            weights_for(model, config.weights, config.class_names)
    return config


def fill_minutes(config: TrainConfig, minutes: float, pictures: Pictures | None = None) -> TrainConfig:
    """`config` with as many steps as fit into some minutes here and now, the same number on every rank, at least 1.

    Real steps on a throw-away model and real pictures are timed; the time for that is included.

    Args:
        config: of the run.
        minutes: more than 0.
        pictures: what has been read already, if anything has.

    Raises:
        ValueError: `minutes` is not positive.
    """
    if not 0 < minutes < math.inf:
        raise ValueError(f"`minutes` must be a positive number, got {minutes}")
    begin = time.perf_counter()
    trial = replace(config, steps=WARMUP_STEPS + TIMED_STEPS)
    trainer = Trainer(trial)
    dataset = (pictures or Pictures()).train(trial)
    durations = []
    for indices in StepOrder(len(dataset), trial.batch_size, trial.seed, 0, trial.steps):
        start = time.perf_counter()
        trainer.take_step(collate([dataset[index] for index in indices]))
        durations.append(time.perf_counter() - start)
    # The mean would carry every hiccup of a busy machine into hundreds of steps.
    per_step = statistics.median(durations[WARMUP_STEPS:])
    steps = max(1, int((minutes * 60 - (time.perf_counter() - begin)) / per_step))
    return replace(config, steps=from_main_rank(lambda: steps))


def steps_in_epochs(epochs: float, config: TrainConfig) -> int:
    """How many steps of `config` show every picture `epochs` times, rounded up. Raises ValueError unless positive."""
    if not 0 < epochs < math.inf:
        raise ValueError(f"`epochs` must be a positive number, got {epochs}")
    return math.ceil(epochs * config.train_images / config.batch_size)


def _from_folder(config: TrainConfig, pictures: Pictures, keep_size: bool) -> dict[str, Any]:
    """The fields that follow from annotated pictures."""
    train, test = choose_splits(config.data, config.test_data)
    read = pictures.annotations(train)
    class_names = train.class_names(read)
    length = min(config.train_images, len(read))
    picture_sizes, boxes, owner = pictures.annotated(train, length, class_names, config.handle).boxes()
    if len(boxes) == 0:
        raise ValueError(f"{train}: there is no box to train on in {len(read)} pictures")
    canvas = config.image_size if keep_size else None
    model, image_size = _with_anchors(config.model, picture_sizes, boxes, owner, canvas)
    model = _with_room(replace(model, num_classes=len(class_names)), most=int(owner.bincount().max()))
    return {
        "data": str(train),
        "test_data": str(test),
        "class_names": class_names,
        "train_images": length,
        "test_images": min(config.test_images, len(test.names())),
        "image_size": image_size,
        "model": model,
    }


def _with_anchors(
    model: FasterRCNNConfig,
    picture_sizes: torch.Tensor,
    boxes: torch.Tensor,
    owner: torch.Tensor,
    canvas: tuple[int, int] | None,
) -> tuple[FasterRCNNConfig, tuple[int, int]]:
    """The detector with anchors for these boxes, one size a level of a pyramid, and the canvas that they are for."""
    kind = next((kind for kind in PYRAMID_LEVELS if model.backbone.startswith(kind)), "")
    levels = PYRAMID_LEVELS.get(kind) if model.fpn else None
    # Weights of torchvision's are frozen norms here; what they know of shapes they learned on pictures of one size.
    least = TRAINED_SIDE if model.norm == "frozen" else SIDES[0]
    fit = fit_detector(picture_sizes, boxes, owner, canvas=canvas, anchor_count=levels, least_side=least)
    return replace(model, anchor_sizes=fit.anchors.sizes, anchor_ratios=fit.anchors.ratios), fit.canvas


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


def _boxes_of_digits(config: TrainConfig) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sizes of pictures, boxes and the picture of each, as `AnnotatedPictures.boxes` gives them."""
    found = Pictures().train(replace(config, train_images=DIGIT_SCENES))
    scenes = [found[index] for index in range(DIGIT_SCENES)]
    owner = torch.repeat_interleave(torch.tensor([len(scene.boxes) for scene in scenes]))
    sizes = torch.tensor([config.image_size] * len(scenes))
    return sizes, torch.cat([scene.boxes for scene in scenes]), owner
