"""What kind of error each wrong detection is, and which objects were missed, at an IoU of one half.

The kinds are those of D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020,
after D. Hoiem et al., "Diagnosing Error in Object Detectors", ECCV 2012. Here an ignored object is never missed, as
there, but it may explain an error.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from frcnn_lite.engine.average_precision import Judged, match, overlaps
from frcnn_lite.ops.boxes import box_area

# What a wrong detection is: it overlaps an object of its class, or of another, by 0.5; the same by 0.1; none.
KINDS = ("duplicate", "wrong class", "localisation", "class and place", "background")


class DetectionError(NamedTuple):
    """A wrong detection, or a missed object."""

    kind: str
    """one of KINDS, or "missed" """
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
    errors = [error for row, picture in enumerate(pictures) for error in _errors_in(picture, row)]
    return sorted(errors, key=lambda error: (error.kind == "missed", -error.score, -float(box_area(error.box))))


def _errors_in(picture: Judged, row: int) -> Iterator[DetectionError]:
    order = picture.found_scores.argsort(descending=True, stable=True)
    found, said, scores = (x[order] for x in (picture.found_boxes, picture.found_labels, picture.found_scores))
    own, ignored = said[:, None] == picture.labels, picture.ignored | picture.crowd
    overlap = overlaps(found[None].double(), picture.boxes[None].double(), picture.crowd[None])[0]
    # No detection can take an object of another class, so one pass matches all classes; [0] is an IoU of one half.
    matched, _, left_over = (of_all[0, 0] for of_all in match((overlap * own)[None], ignored[None]))
    missed = left_over & ~ignored
    # (2, D): of its own class, and of another. One more column, of zeros, is for pictures without objects.
    largest, nearest = torch.stack([pad(overlap * which, (0, 1)) for which in (own, ~own)]).max(dim=2)
    fits = torch.cat([largest >= 0.5, largest >= 0.1, torch.ones_like(matched)[None]])
    first = fits.int().argmax(dim=0).tolist()
    for rank in torch.nonzero(~matched)[:, 0].tolist():
        kind = KINDS[first[rank]]
        touched = int(nearest[first[rank] % 2, rank]) if kind != "background" else None
        if kind in ("wrong class", "localisation"):
            missed[touched] = False
        yield DetectionError(kind, row, found[rank], int(said[rank]), float(scores[rank]), touched)
    for index in torch.nonzero(missed)[:, 0].tolist():
        yield DetectionError("missed", row, picture.boxes[index], int(picture.labels[index]), 0.0, index)
