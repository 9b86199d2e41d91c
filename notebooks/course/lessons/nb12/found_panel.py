"""Pictures with what a detector found in them, as panels among others."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from course.kit.figures.detections import judge
from course.kit.figures.panels import Panel
from frcnn_lite.data.batch import Scene
from frcnn_lite.detection.postprocess import Detections


def found_panels(found: Detections, scenes: Sequence[Scene], name: str) -> list[Panel]:
    """A panel for each picture; `found` may be on any device."""
    return [
        found_panel(scene.image, parts, (scene.boxes, scene.labels), name)
        for scene, parts in zip(scenes, _by_picture(found), strict=True)
    ]


def digits_found(found: Detections, scenes: Sequence[Scene]) -> int:
    """How many objects of the pictures are found with their class, as the panels judge it."""
    return sum(
        sum(judge(parts, (scene.boxes, scene.labels), 0.5, 0.5).right)
        for scene, parts in zip(scenes, _by_picture(found), strict=True)
    )


def found_panel(
    image: ArrayLike,
    found: tuple[ArrayLike, ArrayLike, ArrayLike],
    truth: tuple[ArrayLike, ArrayLike],
    caption: str,
    min_score: float = 0.5,
) -> Panel:
    """Boxes of `min_score` or more, right or wrong by the rule of `detections`, with the class that the detector says.

    found: boxes (n, 4), scores (n,), labels (n,), best score first; truth: boxes (m, 4), labels (m,), -1 for padding.
    """
    judged = judge(found, truth, min_score, 0.5)
    kinds = {"right": [], "wrong": []}  # type: dict[str, list[int]]
    for k, right in enumerate(judged.right):
        kinds["right" if right else "wrong"].append(k)
    boxes = {kind: judged.boxes[which] for kind, which in kinds.items()}
    tags = {kind: [str(int(judged.labels[k])) for k in which] for kind, which in kinds.items()}
    return Panel(image, f"{caption}\n{judged.words}", {"true box": judged.true_boxes, **boxes}, tags)


def _by_picture(found: Detections) -> list[tuple[ArrayLike, ArrayLike, ArrayLike]]:
    return list(zip(*(part.cpu() for part in (found.boxes, found.scores, found.labels)), strict=True))
