"""Average precision after equal time of training from scratch, beside torchvision's Faster R-CNN, on the CPU.

    python benchmarks/equal_time.py --data digits --minutes 5
    python benchmarks/equal_time.py --data voc:data/BCCD --minutes 10
    python benchmarks/equal_time.py --data voc:data/BCCD --minutes 10 --mirrored

Ours is what `python -m frcnn_lite train --data DATA --minutes M` trains, nothing chosen by hand. Torchvision's gets the
same pictures in the same order and as much changed, the same backbone, anchors, numbers of samples and proposals,
width of the head, optimizer and schedule; the RoIAlign, matching, sampling and losses are its own. The average of the
last weights and voting on boxes are ours alone: its scripts for detection have neither. Both train for as many steps
as fit into the minutes, the average kept. Steps are timed for both in turn before anything is trained, so that a busy
hour later slows the runs down and changes nothing that they find. Both are judged by the same code on the same unseen
pictures. Not part of `make bench`: three seeds of both commands take an hour and a half.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torchvision.models.detection import FasterRCNN as TorchvisionFasterRCNN
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

from frcnn_lite import engine
from frcnn_lite.data import Augmentation, Batch, collate
from frcnn_lite.detection.backbone import LiteBackbone
from frcnn_lite.detection.postprocess import Detections
from frcnn_lite.engine.step_order import StepOrder
from frcnn_lite.engine.trainer import build_optimizer

WARMUP_STEPS, TIMED_STEPS = 5, 25


class OursTrainer(engine.Trainer):
    """As it comes."""

    name = "ours"


class TorchvisionTrainer:
    """Torchvision's Faster R-CNN under `engine.Trainer`'s interface and recipe."""

    name = "torchvision"

    def __init__(self, config: engine.TrainConfig) -> None:
        self.config = config
        torch.manual_seed(config.seed)
        self.detector = build_torchvision(config).train()
        self.optimizer, self.scheduler = build_optimizer(self.detector, config)
        self.generator = torch.Generator().manual_seed(config.seed)

    def take_step(self, batch: Batch) -> None:
        """Forward, backward, update."""
        batch = self.config.augmentation(
            batch, torch.rand(len(batch.images), Augmentation.DRAWS, generator=self.generator)
        )
        targets = [
            {"boxes": boxes[labels >= 0], "labels": labels[labels >= 0] + 1}  # 0 is its background
            for boxes, labels in zip(batch.boxes, batch.labels, strict=True)
        ]
        loss = torch.stack(list(self.detector(list(batch.images), targets).values())).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(self.detector.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        self.scheduler.step()


class TwoMaps(nn.Module):
    """The lite backbone as torchvision wants one: images to maps by name."""

    def __init__(self, config: engine.TrainConfig) -> None:
        super().__init__()
        self.maps = LiteBackbone(config.model)
        self.out_channels = self.maps.rpn_channels

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        features = self.maps(images)
        return {"coarse": features.rpn[0], "fine": features.roi[0]}


class OnCoarseMap(nn.Module):
    """A region proposal network that looks at the coarse map alone, as ours does."""

    def __init__(self, rpn: nn.Module) -> None:
        super().__init__()
        self.rpn = rpn

    def forward(self, images: Any, features: dict[str, Tensor], targets: Any = None) -> Any:
        return self.rpn(images, {"coarse": features["coarse"]}, targets)


class StaticDetections(nn.Module):
    """Torchvision's lists of detections as `Detections`, which is what `engine.evaluate` reads."""

    def __init__(self, detector: nn.Module, most: int) -> None:
        super().__init__()
        self.detector, self.most = detector, most

    def forward(self, images: Tensor) -> Detections:
        shape = (len(images), self.most)
        boxes, scores = torch.zeros(*shape, 4), torch.zeros(shape)
        labels, valid = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.bool)
        for row, found in enumerate(self.detector(list(images))):
            count = len(found["boxes"])
            boxes[row, :count], scores[row, :count] = found["boxes"], found["scores"]
            labels[row, :count], valid[row, :count] = found["labels"] - 1, True
        return Detections(boxes, scores, labels, valid)


def build_torchvision(config: engine.TrainConfig) -> TorchvisionFasterRCNN:
    """Torchvision's detector with everything of `config` that it has a place for."""
    model = config.model
    backbone = TwoMaps(config)
    side, channels = model.roi_output_size, model.roi_channels
    detector = TorchvisionFasterRCNN(
        backbone,
        rpn_anchor_generator=AnchorGenerator((model.anchor_sizes,), (model.anchor_ratios,)),
        box_roi_pool=MultiScaleRoIAlign(["fine"], side, sampling_ratio=2),
        box_head=nn.Sequential(nn.Flatten(), nn.Linear(channels * side**2, model.head_width), nn.ReLU()),
        box_predictor=FastRCNNPredictor(model.head_width, model.num_classes + 1),
        min_size=min(config.image_size),
        max_size=max(config.image_size),
        image_mean=[0.0] * 3,  # the backbone normalises
        image_std=[1.0] * 3,
        rpn_fg_iou_thresh=model.rpn_positive_iou,
        rpn_bg_iou_thresh=model.rpn_negative_iou,
        rpn_batch_size_per_image=model.rpn_samples,
        rpn_positive_fraction=model.rpn_positive_fraction,
        rpn_pre_nms_top_n_train=model.pre_nms_proposals,
        rpn_pre_nms_top_n_test=model.pre_nms_proposals,
        rpn_post_nms_top_n_train=model.proposals,
        rpn_post_nms_top_n_test=model.proposals,
        rpn_nms_thresh=model.proposal_nms_iou,
        box_fg_iou_thresh=model.roi_positive_iou,
        box_bg_iou_thresh=model.roi_positive_iou,
        box_batch_size_per_image=model.roi_samples,
        box_positive_fraction=model.roi_positive_fraction,
        box_score_thresh=model.score_threshold,
        box_nms_thresh=model.detection_nms_iou,
        box_detections_per_img=model.detections,
    )
    detector.rpn = OnCoarseMap(detector.rpn)
    return detector


def batches(config: engine.TrainConfig) -> Iterator[Batch]:
    """The pictures of each step."""
    dataset = engine.Pictures().train(config)
    for indices in StepOrder(len(dataset), config.batch_size, config.seed, 0, config.steps):
        yield collate([dataset[index] for index in indices])


def steps_of_both(minutes: float, config: engine.TrainConfig) -> list[int]:
    """How many steps of either fit into the minutes, reading the pictures included: medians of steps taken in turn."""
    count = WARMUP_STEPS + TIMED_STEPS
    trial = replace(config, steps=count)
    trainers = [OursTrainer(trial), TorchvisionTrainer(trial)]
    times: list[list[float]] = [[], []]
    streams = [batches(trial), batches(trial)]
    for _ in range(trial.steps):
        for trainer, stream, durations in zip(trainers, streams, times, strict=True):
            start = time.perf_counter()
            trainer.take_step(next(stream))
            durations.append(time.perf_counter() - start)
    return [int(minutes * 60 / statistics.median(durations[WARMUP_STEPS:])) for durations in times]


def train(trainer: OursTrainer | TorchvisionTrainer) -> engine.AveragePrecision:
    """Train, then judge on the unseen pictures."""
    for batch in batches(trainer.config):
        trainer.take_step(batch)
    detector = trainer.detector
    if isinstance(trainer, TorchvisionTrainer):
        detector = StaticDetections(detector, trainer.config.model.detections)
    return engine.evaluate(detector, engine.Pictures().held_out(trainer.config))


def main() -> None:
    """Time both, train both with every seed, print what each found and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, nargs=2, metavar=("OURS", "TORCHVISION"), help="instead of timing them")
    parser.add_argument("--mirrored", action="store_true", help="torchvision's pictures are mirrored only")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = engine.resolve(data=options.data, mirrored=False)  # torchvision's looks at each picture once
    steps = options.steps or steps_of_both(options.minutes, config)
    print(f"{options.data}, {options.minutes:g} minutes: {steps[0]} steps of ours, {steps[1]} of torchvision's")
    for kind, count in zip((OursTrainer, TorchvisionTrainer), steps, strict=True):
        if options.mirrored and kind is TorchvisionTrainer:
            config = replace(config, zoom=0.0, light=0.0)
        found = []
        for seed in options.seeds:
            run = replace(config, seed=seed, steps=count)
            found.append(train(kind(run)))
            print(f"{kind.name}, seed {seed}: AP50 {found[-1].AP50:.3f}, AP {found[-1].AP:.3f}", flush=True)
        ap50, ap = (statistics.median(getattr(one, field) for one in found) for field in ("AP50", "AP"))
        print(f"{kind.name}, median of {len(found)}: AP50 {ap50:.3f}, AP {ap:.3f}", flush=True)


if __name__ == "__main__":
    main()
