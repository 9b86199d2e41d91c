"""Exercises of notebook 12: cells of a map, predictions in the order of their anchors, the pixels of a box."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.learn.exercise import Case, Exercise, Mistake


def same_tensor(given: Any, expected: Tensor) -> bool:
    return given.shape == expected.shape and torch.equal(given, expected)


def cells(pixels: int, stages: int) -> int:
    for _ in range(stages):
        pixels = (pixels + 1) // 2
    return pixels


def _side_cases(random: Random) -> Sequence[Case]:
    fixed = [(128, 3), (100, 3), (1, 2), (129, 3)]
    return [Case(pair) for pair in fixed + [(random.randint(8, 1000), random.randint(1, 5)) for _ in range(20)]]


def rows_of_anchors(output: Tensor) -> Tensor:
    return output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)


def _output_cases(random: Random) -> Sequence[Case]:
    """Outputs (B, 5 * A, h, w) in which every number tells where it stands."""
    sizes = [(1, 1, 2, 3), (2, 3, 2, 2), (1, 2, 3, 1)]
    sizes += [tuple(random.randint(1, 4) for _ in range(4)) for _ in range(8)]  # type: ignore[misc]
    return [Case((torch.arange(b * 5 * a * h * w).view(b, 5 * a, h, w),)) for b, a, h, w in sizes]


def crop(image: Tensor, box: Sequence[int]) -> Tensor:
    x1, y1, x2, y2 = box
    return image[:, y1:y2, x1:x2]


def _inclusive(image: Tensor, box: Sequence[int]) -> Tensor:
    x1, y1, x2, y2 = box
    return image[:, y1 : y2 + 1, x1 : x2 + 1]


def _as_sides(image: Tensor, box: Sequence[int]) -> Tensor:
    x1, y1, width, height = box
    return image[:, y1 : y1 + height, x1 : x1 + width]


def _crop_cases(random: Random) -> Sequence[Case]:
    """Boxes inside a picture of 24 x 32 pixels, wider than high and the other way round."""
    boxes = [(2, 3, 12, 8), (20, 1, 24, 20), (1, 2, 3, 4)]
    for _ in range(10):
        x, y = random.randint(0, 20), random.randint(0, 12)
        boxes.append((x, y, x + random.randint(1, 11), y + random.randint(1, 11)))
    image = torch.arange(3 * 24 * 32).view(3, 24, 32)
    return [Case((image, box)) for box in boxes]


EXERCISES = (
    Exercise(
        key="12.cells",
        task="The number of cells along a side of `pixels`, after `stages` convolutions of 3 x 3, stride 2, padding 1.",
        reference=cells,
        cases=_side_cases,
        hints=(
            "One stage first: 128 pixels give 64 cells, 5 give 3, 1 gives 1.",
            "Stride 2 with padding 1 takes every other pixel, beginning with the first: half, rounded up.",
            "Round up at every stage: `pixels = (pixels + 1) // 2`, `stages` times.",
        ),
        mistakes=(
            Mistake(
                "rounded down",
                "you divide by the stride and round down. The map has a cell more wherever a stage halves an odd "
                "number, and the anchors no longer fit the predictions.",
                "get_img_output_length of yhenon/keras-frcnn, pull request 169, 2017, where pooling without padding "
                "makes it right",
                answers=(lambda pixels, stages: pixels // 2**stages,),
            ),
            Mistake(
                "not whole",
                "you divide by the stride and leave a fraction of a cell.",
                "yhenon/keras-frcnn pull request 169, 2017, before it",
                answers=(lambda pixels, stages: pixels / 2**stages,),
            ),
        ),
    ),
    Exercise(
        key="12.rows_of_anchors",
        task="The RPN's output (B, 5 * A, h, w), whose channels are five numbers an anchor, anchor after anchor, as "
        "one row for each anchor: (B, h * w * A, 5), row by row of the map and A at each cell, as the anchors stand.",
        reference=rows_of_anchors,
        cases=_output_cases,
        agree=same_tensor,
        hints=(
            "Channels are the second dimension and must become the last: what belongs to one cell stands together.",
            "A view alone changes shapes, not the order in memory: `permute` first.",
            "`output.permute(0, 2, 3, 1).reshape(len(output), -1, 5)`",
        ),
        mistakes=(
            Mistake(
                "two conventions",
                "you read the channels as five groups of A, where they are A groups of five. Shapes fit, and every "
                "anchor learns from the others' numbers.",
                "jwyang/fpn.pytorch issue 6, 2018: one convention in the softmax, the other in the loss",
                answers=(
                    lambda output: (
                        output.view(len(output), 5, -1, *output.shape[2:])
                        .permute(0, 3, 4, 2, 1)
                        .reshape(len(output), -1, 5)
                    ),
                ),
            ),
            Mistake(
                "column by column",
                "you go through the map column by column. The anchors stand row by row.",
                "jwyang/faster-rcnn.pytorch issue 501, 2019, of an RPN whose anchors were laid the other way",
                answers=(lambda output: output.permute(0, 3, 2, 1).reshape(len(output), -1, 5),),
            ),
            Mistake(
                "no permute",
                "you only changed the shape: a row then holds five neighbours of one channel.",
                "yihong-97/Source-free-IAPC pull request 6, 2024, puts a permute in the place of a view",
                answers=(lambda output: output.reshape(len(output), -1, 5),),
            ),
        ),
    ),
    Exercise(
        key="12.crop",
        task="The pixels of `image` (C, H, W) inside `box`, four whole numbers xyxy, corners in absolute pixels: from "
        "x1 to x2, the end excluded, and from y1 to y2.",
        reference=crop,
        cases=_crop_cases,
        agree=same_tensor,
        hints=(
            "Rows of an image are y, columns are x.",
            "The image's last dimension is x: `image[:, rows, columns]`.",
            "`x1, y1, x2, y2 = box`, then `image[:, y1:y2, x1:x2]`",
        ),
        mistakes=(
            Mistake(
                "y first",
                "you took the box's first number for a row. Boxes here are x first, as in torchvision.",
                "pytorch/vision issue 1856, 2020: a network that learned nothing until they were swapped",
                answers=(lambda image, box: image[:, box[0] : box[2], box[1] : box[3]],),
            ),
            Mistake(
                "the end included",
                "you included the last row and column, the +1 of the old codes. Corners are points, not pixels: half "
                "of a 256 pixel image ends at 128, not at 127.",
                "facebookresearch/maskrcnn-benchmark issue 773, 2019",
                answers=(_inclusive,),
            ),
            Mistake(
                "width and height",
                "you took the last two numbers for width and height.",
                "pytorch/vision issue 1128, 2019, the other way round",
                answers=(_as_sides,),
            ),
        ),
    ),
)
