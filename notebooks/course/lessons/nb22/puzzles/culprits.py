"""Loss sums of a batch, name to one number an image, and the images' ids: the ids of the images of which some loss is
not finite, in order.
"""

import math
from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "A sum per image can be asked image by image.",
    "Both `nan` and `inf` are not finite; `math.isfinite` knows.",
    "Keep image_ids[k] when any of the columns is not finite at k.",
)


def culprits(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    return [one for k, one in enumerate(image_ids) if not all(math.isfinite(column[k]) for column in sums.values())]


def cases(random: Random) -> Sequence[Case]:
    nan, inf = math.nan, math.inf
    fixed = [
        ({"rpn_box": [0.5, nan, 0.1], "head_box": [0.2, 0.3, inf]}, [41, 7, 12]),
        ({"rpn_box": [0.5, 1e30], "head_box": [0.2, 0.3]}, [8, 9]),
        ({"rpn_box": [0.5, -inf, 0.4], "head_box": [nan, 0.2, 0.3]}, [3, 4, 5]),
    ]
    cases = [Case(arguments) for arguments in fixed]
    for _ in range(20):
        ids = random.sample(range(100, 999), 6)
        sums = {
            name: [random.choice([0.3, 1.2, 0.0, 2.5, nan, inf]) for _ in ids]
            for name in ("rpn_objectness", "rpn_box", "head_box")
        }
        cases.append(Case((sums, ids)))
    return cases


@wrong
def positions_in_the_batch(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    """these are the positions in the batch. The loader shuffles: what leads to a file is the id.

    Source: pytorch/vision issue 2740, 2020: 'for target at index 0' is all that the error says
    """
    return [image_ids.index(one) for one in culprits(sums, image_ids)]


@wrong
def infinite_is_not_NaN(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    """these are the pictures with a NaN. The logarithm of a width of 0 is infinite first, and NaN one step later.

    Source: pytorch/vision issue 2240, 2020: a loss that is nan only 'after a few iterations'
    """
    return [one for k, one in enumerate(image_ids) if any(math.isnan(column[k]) for column in sums.values())]


@wrong
def the_first_loss_only(sums: dict[str, list[float]], image_ids: list[int]) -> list[int]:
    """these are the pictures in which the first loss is not finite; a broken box shows in the losses of boxes.

    Source: jwyang/faster-rcnn.pytorch issue 193, 2018, where rpn_box alone is nan
    """
    return culprits({"first": next(iter(sums.values()))}, image_ids)
