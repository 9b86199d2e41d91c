"""Which classes a detector takes for which: a confusion matrix of true and of found classes.

Detections are matched to objects as COCO matches them, but without regard to their classes: the one with the best score
first, each with the free object that it overlaps most, if that is by an IoU of one half. pycocotools calls this
`useCats=0`, and `evaluate_detections(classwise=False)` of FiftyOne pairs across classes likewise. Ultralytics' matrix
takes the pair with the largest overlap first, and there a score of 0.25 and an IoU of 0.45 are enough. A classifier's
matrix has neither the last row, what was found where nothing is, nor the last column, what was missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frcnn_lite.engine.average_precision import Judged, evaluation

IOU = 0.5  # the first threshold of `evaluation`
SURE = 0.5  # the least score that `predict` reports, unless it is called with a different one


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often objects of each class were found as which class.

    Attributes:
        counts: (C + 1, C + 1) int64. There is a row for each true class and one for "no object", a column for each
            found class and one for "missed". The row of a class adds up to its objects; the last row counts detections
            without an object of their own: on background, or second ones of an object that a better score has found.
        class_names: of the C classes.
        score: the least score that counted.
    """

    counts: Tensor
    class_names: tuple[str, ...]
    score: float

    @property
    def rows(self) -> list[str]:
        return [*self.class_names, "no object"]

    @property
    def columns(self) -> list[str]:
        return [*self.class_names, "missed"]

    def to_dict(self) -> dict[str, Any]:
        """With the rule in words, for a file that is read without this one."""
        matching = "best score first, each detection with the free object it overlaps most, of any class"
        rule = {"matching": matching, "iou": IOU, "score": self.score}
        return {**rule, "rows": self.rows, "columns": self.columns, "counts": self.counts.tolist()}


def confusion_matrix(pictures: Sequence[Judged], class_names: Sequence[str], *, score: float = SURE) -> ConfusionMatrix:
    """How often objects of each class were found as which class.

    Objects that are ignored (difficult ones and crowds) are not counted, and neither is a detection that finds one.

    Args:
        pictures: what `judge` gives.
        class_names: of all classes, by label.
        score: detections below it do not count.

    Raises:
        ValueError: as `average_precision`.
    """
    sure = [_keep(picture, picture.found_scores >= score) for picture in pictures]
    true = [label for picture in sure for label in picture.labels.tolist()]
    found = [label for picture in sure for label in picture.found_labels.tolist()]
    of_one_class = [
        p._replace(labels=torch.zeros_like(p.labels), found_labels=torch.zeros_like(p.found_labels)) for p in sure
    ]
    most = max((len(picture.found_labels) for picture in sure), default=0)
    counts, last = torch.zeros(len(class_names) + 1, len(class_names) + 1, dtype=torch.int64), len(class_names)
    # The numbers of objects and detections begin with 1 and go through all pictures; row 0 of matches is an IoU of 0.5.
    for result in filter(None, evaluation(of_one_class, [0], max_detections=max(most, 1)).evalImgs):
        matches = zip(result["gtIds"], result["gtMatches"][0], result["gtIgnore"], strict=True)
        for number, by, ignored in matches:
            if not ignored:
                counts[int(true[number - 1]), int(found[int(by) - 1]) if by else last] += 1
        for number, of, ignored in zip(result["dtIds"], result["dtMatches"][0], result["dtIgnore"][0], strict=True):
            if not (of or ignored):
                counts[last, int(found[number - 1])] += 1
    return ConfusionMatrix(counts, tuple(class_names), score)


def _keep(picture: Judged, which: Tensor) -> Judged:
    """The picture with those of its detections for which `which` (d,) is true."""
    names = ("found_boxes", "found_scores", "found_labels")
    return picture._replace(**{name: getattr(picture, name)[which] for name in names})
