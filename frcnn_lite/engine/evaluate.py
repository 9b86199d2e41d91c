"""COCO average precision of a detector, computed by pycocotools."""

import contextlib
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frcnn_lite.data import DigitScenes, Scene, collate
from frcnn_lite.detection import FasterRCNN


@dataclass(frozen=True)
class AveragePrecision:
    """AP: mean over IoU thresholds 0.50, 0.55 .. 0.95 and classes; AP50, AP75: at one threshold; AP50_per_class: by
    class name, without classes that have no object; images, objects: how many were judged. All APs in 0..1.

    T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014.
    """

    AP: float
    AP50: float
    AP75: float
    AP50_per_class: dict[str, float]
    images: int
    objects: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def evaluate(model: FasterRCNN, dataset: DigitScenes, *, batch_size: int = 8) -> AveragePrecision:
    """Judge `model`, on the device it is on, over all pictures of `dataset`. Leaves its training mode as it was.

    Raises ValueError for a data set without pictures.
    """
    if len(dataset) == 0:
        raise ValueError("dataset must hold at least one picture, got none")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    truth: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    image_ids: list[int] = []
    try:
        for scenes in _groups(dataset, batch_size):
            detections = model(collate(scenes).images.to(device))
            image_ids += [scene.image_id for scene in scenes]
            for row, scene in enumerate(scenes):
                truth += _annotations(scene.image_id, scene.boxes, scene.labels)
                valid = detections.valid[row]
                boxes, scores = detections.boxes[row][valid], detections.scores[row][valid]
                found += _annotations(scene.image_id, boxes, detections.labels[row][valid], scores)
    finally:
        model.train(was_training)
    return average_precision(truth, found, image_ids, dataset.class_names)


def average_precision(
    truth: list[dict[str, Any]], found: list[dict[str, Any]], image_ids: list[int], class_names: tuple[str, ...]
) -> AveragePrecision:
    """COCO's numbers for annotations in COCO's own form (`bbox` xywh); pycocotools is kept from printing."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    # Its matching takes id 0 for "unmatched", so annotations count from 1.
    annotations = [{**one, "id": number, "iscrowd": 0} for number, one in enumerate(truth, start=1)]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": image_id} for image_id in image_ids],
            "categories": [{"id": number, "name": name} for number, name in enumerate(class_names)],
            "annotations": annotations,
        }
        coco.createIndex()
        # loadRes looks at the first result to learn their kind, so it cannot take an empty list.
        results = coco.loadRes(found) if found else COCO()
        judge = COCOeval(coco, results, "bbox")
        judge.evaluate()
        judge.accumulate()
    precision = judge.eval["precision"][:, :, :, 0, -1]  # thresholds, recalls, classes; all areas, 100 detections
    per_class = {name: _mean(precision[0, :, number]) for number, name in enumerate(class_names)}
    return AveragePrecision(
        AP=_mean(precision) or 0.0,
        AP50=_mean(precision[0]) or 0.0,
        AP75=_mean(precision[5]) or 0.0,
        AP50_per_class={name: value for name, value in per_class.items() if value is not None},
        images=len(image_ids),
        objects=len(truth),
    )


def _mean(precision: np.ndarray) -> float | None:
    """-1 marks a class without objects; None when nothing else is there."""
    judged = precision[precision > -1]
    return float(judged.mean()) if judged.size else None


def _annotations(image_id: int, boxes: Tensor, labels: Tensor, scores: Tensor | None = None) -> list[dict[str, Any]]:
    corners = boxes.double().cpu()
    widths_heights = corners[:, 2:] - corners[:, :2]
    rows = torch.cat([corners[:, :2], widths_heights], dim=1).tolist()
    annotations = [
        {"image_id": image_id, "category_id": label, "bbox": row, "area": row[2] * row[3]}
        for row, label in zip(rows, labels.tolist(), strict=True)
    ]
    if scores is not None:
        for annotation, score in zip(annotations, scores.tolist(), strict=True):
            annotation["score"] = score
    return annotations


def _groups(dataset: DigitScenes, size: int) -> Iterator[list[Scene]]:
    for start in range(0, len(dataset), size):
        yield [dataset[index] for index in range(start, min(start + size, len(dataset)))]
