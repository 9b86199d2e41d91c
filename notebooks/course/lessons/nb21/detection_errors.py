"""What kind of error each wrong detection is, and which objects were missed, at an IoU of one half.

The kinds are those of D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020,
after D. Hoiem et al., "Diagnosing Error in Object Detectors", ECCV 2012. Here an ignored object is never missed, as
there, but it may explain an error.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from pycocotools import mask
from torch import Tensor

from frcnn_lite.engine.average_precision import Judged, evaluation

# The first that fits: it overlaps an object of its class, or of a different one, by so much. Nothing fits "background".
KINDS = (
    ("duplicate", True, 0.5),
    ("wrong class", False, 0.5),
    ("localisation", True, 0.1),
    ("class and place", False, 0.1),
)


class DetectionError(NamedTuple):
    """A wrong detection, or a missed object."""

    kind: str
    """one of KINDS, "background" or "missed" """
    picture: int
    """its place in the list of pictures"""
    box: Tensor
    """(4,) of the detection, or of the missed object"""
    label: int
    """the class that was said, or that the missed object has"""
    score: float
    """0 for a missed object"""
    object: int | None
    """row of the object that it overlaps most, or that was missed; None on background"""


def find_errors(pictures: Sequence[Judged]) -> list[DetectionError]:
    """Every error in `pictures`: wrong detections by falling score, then missed objects, large ones first.

    A detection is a duplicate if it overlaps an object of its class that a better one found, of the wrong class if it
    overlaps an object of another by 0.5, a localisation error if it overlaps one of its own by 0.1, of class and place
    if one of another, else background. An object is missed if none found it, nor is of the wrong class or badly
    localised on it.
    """
    labels = chain.from_iterable((*p.labels.tolist(), *p.found_labels.tolist()) for p in pictures)
    most = max((len(picture.found_boxes) for picture in pictures), default=1)
    results = [result for result in evaluation(pictures, set(labels), max_detections=most).evalImgs if result]
    # Row 0 of what was matched is an IoU of one half; the numbers go through all pictures.
    right, seen = (
        {number for result in results for number, by in zip(result[ids], result[matches][0], strict=True) if by}
        for ids, matches in (("dtIds", "dtMatches"), ("gtIds", "gtMatches"))
    )
    errors: list[DetectionError] = []
    first_found = first_object = 1
    for row, picture in enumerate(pictures):
        is_right = [number in right for number in range(first_found, first_found + len(picture.found_boxes))]
        was_seen = [number in seen for number in range(first_object, first_object + len(picture.boxes))]
        errors += _errors_in(picture, row, is_right, was_seen)
        first_found, first_object = first_found + len(is_right), first_object + len(was_seen)
    return sorted(errors, key=lambda error: (error.kind == "missed", -error.score, -_area(error.box)))


def _errors_in(picture: Judged, row: int, is_right: list[bool], was_seen: list[bool]) -> Iterator[DetectionError]:
    overlap = _overlaps(picture.found_boxes, picture.boxes, picture.crowd)
    explained = [a or b for a, b in zip(was_seen, (picture.ignored | picture.crowd).tolist(), strict=True)]
    for index in picture.found_scores.argsort(descending=True, stable=True).tolist():
        if is_right[index]:
            continue
        label = int(picture.found_labels[index])
        kind, touched = _kind(overlap[index], picture.labels == label)
        if kind in ("wrong class", "localisation") and touched is not None:
            explained[touched] = True
        score = float(picture.found_scores[index])
        yield DetectionError(kind, row, picture.found_boxes[index], label, score, touched)
    for index, known in enumerate(explained):
        if not known:
            yield DetectionError("missed", row, picture.boxes[index], int(picture.labels[index]), 0.0, index)


def _overlaps(found: Tensor, boxes: Tensor, crowd: Tensor) -> Tensor:
    """(D, G) float64 of boxes (D, 4) and (G, 4): IoU, and for a crowd the part of the detection that lies in it."""
    if not (len(found) and len(boxes)):
        return torch.zeros(len(found), len(boxes), dtype=torch.float64)
    corners = (box.double() for box in (found, boxes))
    sized = (torch.cat([box[:, :2], box[:, 2:] - box[:, :2]], dim=1).tolist() for box in corners)
    return torch.from_numpy(mask.iou(*sized, crowd.int().tolist()))


def _kind(overlap: Tensor, same: Tensor) -> tuple[str, int | None]:
    """What a wrong detection is, and which object explains it, from overlaps (G,) and whose class is its own (G,)."""
    for kind, own_class, least in KINDS:
        fitting = torch.where(same == own_class, overlap, 0.0)
        if len(fitting) and fitting.max() >= least:
            return kind, int(fitting.argmax())
    return "background", None


def _area(box: Tensor) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))
