"""COCO's average precision and recall: pycocotools computes them, from what a detector found beside what is there.

COCO reads the precision of each class off at the 101 recalls 0.00, 0.01 .. 1.00. PASCAL VOC 2007 read it at 11 recalls,
and VOC from 2010 on takes the area below all of the curve, so their AP50 of the same detections differs in its second
or third digit. pycocotools adds a tiny number to each denominator: a perfect AP is 1 less some 1e-16.

T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; M. Everingham et al., "The PASCAL Visual
Object Classes Challenge: A Retrospective", IJCV 2015.
"""

import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torch import Tensor

SIZES = {"all": (0.0, math.inf), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
"""COCO's: the least and the largest area, in pixels of the picture's file. Here it is the box's; in COCO's own files an
object has the area of its outline, which is smaller."""
ALL = {"all": SIZES["all"]}
NUMBERS = (1, 10)  # of detections whose recall COCO looks at, too


class Judged(NamedTuple):
    """One picture: the truth, and what was found in it. Boxes are `xyxy` pixels."""

    image_id: int
    boxes: Tensor
    """(n, 4)"""
    labels: Tensor
    """(n,) int64"""
    ignored: Tensor
    """(n,) bool: finding it counts neither for nor against, however often (VOC's `difficult`, COCO's crowds)"""
    crowd: Tensor
    """(n,) bool: a region of many objects; a detection's overlap with it is measured in parts of the detection"""
    found_boxes: Tensor
    """(d, 4)"""
    found_scores: Tensor
    """(d,)"""
    found_labels: Tensor
    """(d,) int64"""
    scale: float = 1.0
    """how long a pixel of the picture's file is here, where boxes are those of a canvas: COCO's sizes mean the file"""


@dataclass(frozen=True)
class AveragePrecision:
    """How good detections are, by the rules of COCO. All APs are in 0..1.

    Attributes:
        AP: mean over the IoU thresholds 0.50, 0.55 .. 0.95 and over classes.
        AP50, AP75: at one threshold, mean over classes.
        AR: largest recall, mean over the same thresholds and classes.
        AP_per_class, AP50_per_class: by the name of the class, without classes that have no object.
        images, objects: how many were judged.
        AP_small .. AR_large: of the objects of one of `SIZES` alone; None where no object has it.
        AR1, AR10: AR of the best 1 or 10 detections of a picture and class.
    """

    AP: float
    AP50: float
    AP75: float
    AR: float
    AP_per_class: dict[str, float]
    AP50_per_class: dict[str, float]
    images: int
    objects: int
    AP_small: float | None
    AP_medium: float | None
    AP_large: float | None
    AR_small: float | None
    AR_medium: float | None
    AR_large: float | None
    AR1: float
    AR10: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ClassCurve(NamedTuple):
    """Precision over recall of one class, for every IoU threshold."""

    precision: Tensor
    """(10, 101) float64: at recall 0.00, 0.01 .. 1.00, each the best precision at this recall or a larger one"""
    recall: Tensor
    """(10,) float64: the largest recall reached"""
    ranked: Tensor
    """(10, D, 2) float64: recall and precision after each detection, best score first; nan until one has counted"""
    objects: int
    """how many there were to find"""


def average_precision(
    pictures: Sequence[Judged], class_names: Sequence[str], *, max_detections: int = 100
) -> AveragePrecision:
    """COCO's numbers over pictures that were judged.

    Args:
        pictures: what `judge` gives.
        class_names: of all classes, by label.
        max_detections: how many of a picture and class count, the best first.

    Raises:
        ValueError: a picture is there twice (a sampler that pads its last batch would count it twice).
    """
    found = evaluation(pictures, range(len(class_names)), SIZES, NUMBERS, max_detections=max_detections)
    judged = _curves(found, pictures, class_names)
    AP50_per_class = {name: float(curve.precision[0].mean()) for name, curve in judged.items()}
    return AveragePrecision(
        AP=_mean(curve.precision.mean() for curve in judged.values()),
        AP50=_mean(AP50_per_class.values()),
        AP75=_mean(curve.precision[5].mean() for curve in judged.values()),
        AR=_mean(curve.recall.mean() for curve in judged.values()),
        AP_per_class={name: float(curve.precision.mean()) for name, curve in judged.items()},
        AP50_per_class=AP50_per_class,
        images=len(pictures),
        objects=sum(curve.objects for curve in judged.values()),
        **_by_size_and_number(found),
    )


def class_curves(
    pictures: Sequence[Judged], class_names: Sequence[str], *, max_detections: int = 100
) -> dict[str, ClassCurve]:
    """Precision over recall of every class that has an object.

    Args:
        pictures: what `judge` gives.
        class_names: of all classes, by label.
        max_detections: how many of a picture and class count, the best first.

    Returns:
        Class name -> curve.

    Raises:
        ValueError: as `average_precision`.
    """
    judged = evaluation(pictures, range(len(class_names)), max_detections=max_detections)
    return _curves(judged, pictures, class_names)


def _curves(judged: "Evaluation", pictures: Sequence[Judged], class_names: Sequence[str]) -> dict[str, ClassCurve]:
    curves = {}
    for label, name in enumerate(class_names):
        objects = sum(int(((p.labels == label) & ~(p.ignored | p.crowd)).sum()) for p in pictures)
        if objects:
            precision, recall = (
                torch.from_numpy(judged.eval[key][..., label, 0, -1]) for key in ("precision", "recall")
            )
            of_class = (result for result in judged.evalImgs if result and result["category_id"] == label)
            results = [result for result in of_class if result["aRng"] == SIZES["all"]]
            curves[name] = ClassCurve(precision, recall, _ranked(results, objects), objects)
    return curves


class Evaluation(COCOeval):
    """pycocotools' own, in which what VOC calls difficult is ignored as a crowd is, but overlaps as an object does.

    COCO knows one flag for both, `iscrowd`; here `region` says whose overlap is measured in parts of the detection.
    """

    def computeIoU(self, imgId: int, catId: int) -> Any:
        objects, found = self._gts[imgId, catId], self._dts[imgId, catId]
        best = np.argsort([-one["score"] for one in found], kind="mergesort")[: self.params.maxDets[-1]]
        boxes = [found[k]["bbox"] for k in best]
        return mask.iou(boxes, [one["bbox"] for one in objects], [one["region"] for one in objects])


def evaluation(
    pictures: Sequence[Judged],
    labels: Iterable[int],
    sizes: Mapping[str, tuple[float, float]] = ALL,
    numbers: Sequence[int] = (),
    *,
    max_detections: int = 100,
) -> Evaluation:
    """Detections matched to objects and accumulated: the contents of `eval` and `evalImgs` of a `COCOeval`.

    Objects and detections are numbered from 1, through the pictures and their rows: an id of 0 means "none" there.

    Args:
        pictures: what `judge` gives.
        labels: the classes to look at.
        sizes: name -> the least and the largest area of an object that counts, in pixels of the picture's file.
        numbers: of detections of a picture and class that are looked at beside `max_detections`.
        max_detections: how many of a picture and class count, the best first.

    Raises:
        ValueError: a picture is there twice.
    """
    counts = Counter(picture.image_id for picture in pictures)
    twice = sorted(image_id for image_id, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"`pictures` must be judged once each, got image_id {twice[:5]} more than once")
    objects: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for picture in pictures:
        ignored = picture.ignored | picture.crowd
        rows = zip(picture.labels.tolist(), _xywh(picture.boxes), ignored.tolist(), picture.crowd.tolist(), strict=True)
        for label, box, ignore, crowd in rows:
            flags = {"iscrowd": int(ignore), "region": int(crowd)}
            objects.append(_entry(len(objects) + 1, picture, label, box) | flags)
        scores = picture.found_scores.double().tolist()
        for label, box, score in zip(picture.found_labels.tolist(), _xywh(picture.found_boxes), scores, strict=True):
            found.append(_entry(len(found) + 1, picture, label, box) | {"score": score})
    known = {
        "images": [{"id": picture.image_id} for picture in pictures],
        "categories": [{"id": label, "name": str(label)} for label in labels],
    }
    with redirect_stdout(io.StringIO()):  # pycocotools says what it does, on standard output
        tables = COCO(), COCO()
        for table, annotations in zip(tables, (objects, found), strict=True):
            table.dataset = {**known, "annotations": annotations}
            table.createIndex()
        judged = Evaluation(*tables, iouType="bbox")
        judged.params.areaRng, judged.params.areaRngLbl = list(sizes.values()), list(sizes)
        judged.params.maxDets = [*(min(number, max_detections) for number in numbers), max_detections]
        judged.evaluate()
        judged.accumulate()
    return judged


def _ranked(results: Sequence[dict[str, Any]], objects: int) -> Tensor:
    """`ClassCurve.ranked`, from what was matched in each picture."""
    scores = np.concatenate([result["dtScores"] for result in results] or [[]])
    order = torch.from_numpy(np.argsort(-scores, kind="mergesort"))
    none = np.zeros((10, 0))
    matched, ignored = (
        torch.from_numpy(np.concatenate([none, *(result[key] for result in results)], axis=1) > 0)[:, order]
        for key in ("dtMatches", "dtIgnore")
    )
    hits, misses = ((~ignored & which).double().cumsum(dim=1) for which in (matched, ~matched))
    precision = hits / (hits + misses)  # 0/0 where only ignored ones came so far
    return torch.stack([(hits / objects).where(precision.isfinite(), precision), precision], dim=2)


def _entry(number: int, picture: Judged, label: int, box: list[float]) -> dict[str, Any]:
    area = box[2] * box[3] / picture.scale**2
    return {"id": number, "image_id": picture.image_id, "category_id": int(label), "bbox": box, "area": area}


def _xywh(boxes: Tensor) -> list[list[float]]:
    """COCO's boxes: the left upper corner, width and height."""
    boxes = boxes.double()
    return torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], dim=1).tolist()


def _by_size_and_number(found: "Evaluation") -> dict[str, Any]:
    """The fields of `AveragePrecision` from AP_small on."""
    precision, recall = found.eval["precision"], found.eval["recall"]
    numbers: dict[str, Any] = {f"AR{n}": _of_all_classes(recall[..., 0, k]) or 0.0 for k, n in enumerate(NUMBERS)}
    for place, size in enumerate(SIZES):
        if size != "all":
            numbers[f"AP_{size}"] = _of_all_classes(precision[..., place, -1])
            numbers[f"AR_{size}"] = _of_all_classes(recall[..., place, -1])
    return numbers


def _of_all_classes(numbers: Any) -> float | None:
    """The mean of those that are there: pycocotools writes -1 for a class without objects."""
    return float(numbers[numbers > -1].mean()) if (numbers > -1).any() else None


def _mean(values: Iterable[Tensor | float]) -> float:
    """0 for a judgement without objects."""
    listed = [float(value) for value in values]
    return sum(listed) / len(listed) if listed else 0.0
