"""One picture with what a detector found in it, as a panel among others."""

from numpy.typing import ArrayLike

from course.kit.figures.detections import judge
from course.kit.figures.panels import Panel


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
