"""COCO's average precision and recall, vectorised.

Greedy matching goes through the detections of a picture one after the other, best score first; everything else runs
side by side: all pictures and all IoU thresholds at once. pycocotools is its oracle (tests).

T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

# multigpu: noqa: FL002, FL007 evaluation is on the CPU, where detections were brought as they came
# NumPy's, to the last bit: a recall of 3/10 has to land on the same side of "0.30" as in pycocotools.
IOU_THRESHOLDS = torch.from_numpy(np.linspace(0.5, 0.95, 10))
RECALL_POINTS = torch.from_numpy(np.linspace(0.0, 1.0, 101))


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


@dataclass(frozen=True)
class AveragePrecision:
    """AP: mean over IoU thresholds 0.50, 0.55 .. 0.95 and classes; AP50, AP75: at one threshold; AR: largest recall,
    mean over the same; AP_per_class, AP50_per_class: by class name, without classes that have no object; images,
    objects: how many were judged. All APs in 0..1.
    """

    AP: float
    AP50: float
    AP75: float
    AR: float
    AP_per_class: dict[str, float]
    AP50_per_class: dict[str, float]
    images: int
    objects: int

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
    """COCO's numbers over `pictures`, with at most `max_detections` a picture and class.

    Raises ValueError when a picture is there twice (a sampler that pads its last batch would count it twice).
    """
    judged = class_curves(pictures, class_names, max_detections=max_detections)
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
    )


def class_curves(
    pictures: Sequence[Judged], class_names: Sequence[str], *, max_detections: int = 100
) -> dict[str, ClassCurve]:
    """The curve of every class that has an object, by name; raises as `average_precision` does."""
    counts = Counter(picture.image_id for picture in pictures)
    twice = sorted(image_id for image_id, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"pictures must be judged once each, got image_id {twice[:5]} more than once")
    curves = {name: class_curve(pictures, k, max_detections=max_detections) for k, name in enumerate(class_names)}
    return {name: curve for name, curve in curves.items() if curve.objects}


def class_curve(pictures: Sequence[Judged], label: int, *, max_detections: int = 100) -> ClassCurve:
    """Precision over recall of one class, all its detections ranked by score over all pictures."""
    matches = match_class(pictures, label, max_detections=max_detections)
    order = matches.scores.argsort(descending=True, stable=True)
    counted = ~matches.ignored[:, order]
    hits = (counted & matches.matched[:, order]).double().cumsum(dim=1)
    misses = (counted & ~matches.matched[:, order]).double().cumsum(dim=1)
    recall = hits / max(matches.objects, 1)
    precision = hits / (hits + misses)  # 0/0 where only ignored ones came so far
    ranked = torch.stack([recall.where(precision.isfinite(), precision), precision], dim=2)
    precision = precision.nan_to_num(0.0).flip(1).cummax(dim=1).values.flip(1)  # the best at this recall or beyond
    at = torch.searchsorted(recall, RECALL_POINTS.expand(len(IOU_THRESHOLDS), -1).contiguous())
    beyond = precision.new_zeros(len(precision), 1)  # a recall that is never reached has precision 0
    precision = torch.cat([precision, beyond], dim=1).gather(1, at)
    reached = recall[:, -1] if recall.shape[1] else recall.new_zeros(len(recall))
    return ClassCurve(precision, reached, ranked, matches.objects)


class ClassMatches(NamedTuple):
    """Who matched what in one class, all pictures' detections (D,) behind each other, best first within a picture."""

    scores: Tensor
    """(D,) float64"""
    matched: Tensor
    """(10, D) bool: matched an object, for every IoU threshold"""
    ignored: Tensor
    """(10, D) bool: what it matched is not counted"""
    objects: int
    """objects that are not ignored"""


def match_class(pictures: Sequence[Judged], label: int, *, max_detections: int = 100) -> ClassMatches:
    """Match the detections of one class to its objects: by falling score, each takes the free object that it overlaps
    most, if by the threshold; an object that is ignored only when no other is left, and without using it up."""
    if not pictures:
        none = torch.zeros(len(IOU_THRESHOLDS), 0, dtype=torch.bool)
        return ClassMatches(torch.zeros(0, dtype=torch.float64), none, none, objects=0)
    rows = [_of_class(picture, label, max_detections) for picture in pictures]
    boxes = pad_sequence([row.boxes for row in rows], batch_first=True)  # padding overlaps nothing
    ignored, crowd = (
        pad_sequence([getattr(row, name) for row in rows], batch_first=True) for name in ("ignored", "crowd")
    )
    found = pad_sequence([row.found_boxes for row in rows], batch_first=True)
    matched, skipped, _ = match(overlaps(found, boxes, crowd), ignored)
    real = torch.stack([torch.arange(found.shape[1]) < len(row.found_boxes) for row in rows])
    return ClassMatches(
        scores=torch.cat([row.found_scores for row in rows]),
        matched=matched[:, real],
        ignored=skipped[:, real],
        objects=sum(int((~row.ignored).sum()) for row in rows),
    )


def match(overlap: Tensor, ignored: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From overlap (P, D, G), detections best first, and ignored objects (P, G), for every IoU threshold:
    detections (10, P, D) that are matched, and matched to what is ignored; objects (10, P, G) that are left over."""
    # An IoU of 1 is rarely exactly 1; the margin is pycocotools'.
    thresholds = IOU_THRESHOLDS.clamp(max=1 - 1e-10)[:, None, None]
    free = torch.ones(len(thresholds), *ignored.shape, dtype=torch.bool)
    matched = torch.zeros(len(thresholds), *overlap.shape[:2], dtype=torch.bool)
    skipped = torch.zeros_like(matched)
    if ignored.shape[1] == 0:
        return matched, skipped, free
    for rank in range(overlap.shape[1]):
        candidates = free & (overlap[:, rank] >= thresholds)
        counted = candidates & ~ignored
        candidates = torch.where(counted.any(dim=2, keepdim=True), counted, candidates)
        # Of equal overlaps the last object wins, in pycocotools as here.
        best = ignored.shape[1] - 1 - torch.where(candidates, overlap[:, rank], -1.0).flip(2).argmax(dim=2)
        matched[:, :, rank] = candidates.any(dim=2)
        skipped[:, :, rank] = matched[:, :, rank] & ignored.expand_as(free).gather(2, best[..., None])[..., 0]
        taken = one_hot(best, ignored.shape[1]).bool() & matched[:, :, rank, None]
        free &= ~(taken & ~ignored)
    return matched, skipped, free


def overlaps(found: Tensor, boxes: Tensor, crowd: Tensor) -> Tensor:
    """(P, D, G): IoU, and for a crowd the part of the detection that lies in it."""
    found, boxes = found[:, :, None], boxes[:, None]
    sides = torch.minimum(found[..., 2:], boxes[..., 2:]) - torch.maximum(found[..., :2], boxes[..., :2])
    common = sides.clamp(min=0).prod(dim=-1)
    of_found, of_boxes = ((corners[..., 2:] - corners[..., :2]).prod(dim=-1) for corners in (found, boxes))
    whole = torch.where(crowd[:, None], of_found, of_found + of_boxes - common)
    return torch.where(whole > 0, common / whole, 0.0)


def _of_class(picture: Judged, label: int, max_detections: int) -> Judged:
    """The rows of one class, in float64; its detections best first."""
    truth, found = picture.labels == label, picture.found_labels == label
    order = picture.found_scores[found].double().argsort(descending=True, stable=True)[:max_detections]
    return Judged(
        image_id=picture.image_id,
        boxes=picture.boxes[truth].double(),
        labels=picture.labels[truth],
        ignored=picture.ignored[truth] | picture.crowd[truth],
        crowd=picture.crowd[truth],
        found_boxes=picture.found_boxes[found].double()[order],
        found_scores=picture.found_scores[found].double()[order],
        found_labels=picture.found_labels[found][order],
    )


def _mean(values: Iterable[Tensor | float]) -> float:
    """0 for a judgement without objects."""
    listed = [float(value) for value in values]
    return sum(listed) / len(listed) if listed else 0.0
