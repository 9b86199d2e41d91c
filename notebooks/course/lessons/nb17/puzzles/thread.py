"""One thread of RoI pooling: write the largest feature of the bin to which `index` leads."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb17.cases import Launch, right_place, same_numbers, writes_elsewhere
from frcnn_lite import ops

hints = (
    "First the four lines of `place`. Its sizes are `features.shape[1]`, `rows.shape[1]` and `columns.shape[1]`.",
    "Then the edges, `top, bottom = rows[r, i].tolist()`, and a loop over `range(top, bottom)` with one over "
    "the columns inside. The plane is `features[images[r], c]`.",
    "Begin with `best = -math.inf`, or with 0 where `top == bottom` or `left == right`, and end with "
    "`values[index] = best`.",
)


def thread(index: int, features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> None:
    channels, ph, pw = features.shape[1], rows.shape[1], columns.shape[1]
    j, i = index % pw, index // pw % ph
    c, r = index // pw // ph % channels, index // pw // ph // channels
    (top, bottom), (left, right) = rows[r, i].tolist(), columns[r, j].tolist()
    best = -math.inf if top < bottom and left < right else 0.0
    for y in range(top, bottom):
        for x in range(left, right):
            best = max(best, float(features[images[r], c, y, x]))
    values[index] = best


Place = Callable[[int, int, int, int, int], tuple[int, int, int, int]]


def _rows_first(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    return index // pw // ph // channels, index // pw // ph % channels, index % ph, index // ph % pw


def _by_rows(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    """Divides by the number of rows where the length of a row is meant."""
    return index // ph // pw // channels, index // ph // pw % channels, index // ph % ph, index % pw


def _regions_first(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    rest = index // regions
    return index % regions, rest % channels, rest // channels % ph, rest // channels // ph


def _channels_first(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    """Region and channel in each other's place."""
    return index // pw // ph % regions, index // pw // ph // regions, index // pw % ph, index % pw


def _pools(
    place: Place = right_place,
    start: float = -math.inf,
    empty: float = 0.0,
    beyond: int = 0,
    image: Callable[[Tensor, int, int], int] = lambda images, r, n: int(images[r]),
    writes: bool = True,
) -> Callable[..., None]:
    """`thread` with one of its lines changed."""

    def wrong(index: int, features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> None:
        r, c, i, j = place(index, len(rows), features.shape[1], rows.shape[1], columns.shape[1])
        (top, bottom), (left, right) = rows[r, i].tolist(), columns[r, j].tolist()
        best = start if top < bottom and left < right else empty
        for y in range(top, min(bottom + beyond, features.shape[2])):
            for x in range(left, min(right + beyond, features.shape[3])):
                best = max(best, float(features[image(images, r, len(features)), c, y, x]))
        if writes:
            values[index] = best

    return wrong


def cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases = []
    for n, channels, ph, pw, boxes in [
        (2, 2, 2, 3, [[1, 0, 0, 32, 20], [1, 8, 8, 40, 40], [0, 0, 16, 60, 47]]),
        (1, 1, 3, 2, [[0, 40, 40, 90, 90]]),  # beyond the map: the last bins are empty
        (2, 3, 2, 2, [[0, 0, 0, 24, 24], [1, 8, 8, 40, 40]]),
        *((2, random.randint(1, 2), 2, 3, [[random.randint(0, 1), *_box(random)] for _ in range(2)]) for _ in range(2)),
    ]:
        features = 100 * (torch.randn(n, channels, 6, 8, generator=generator).round(decimals=2) - 1.5)
        images, rows, columns = ops.roi_bins(torch.tensor(boxes, dtype=torch.float32), (6, 8), ph, pw, 1 / 8)
        out = torch.zeros(len(boxes) * channels * ph * pw)
        order = tuple(random.sample(range(len(out)), len(out)))
        words = f"{(len(boxes), channels, ph, pw)} outputs of the boxes {boxes}"
        cases.append(Launch((features, images, rows, columns, out), order=order, words=words))
    return cases


def _box(random: Random) -> list[int]:
    x, y = random.randint(0, 30), random.randint(0, 20)
    return [x, y, x + random.randint(8, 30), y + random.randint(8, 24)]


agree = same_numbers


@wrong
def rows_before_columns(*given):
    """this is the memory of threads that take the row from the remainder. The last dimension runs fastest in memory:
    the remainder by `pw` is the column.

    Source: boxes with y first and kernels with x first, chenyuntc/simple-faster-rcnn-pytorch, 2017,
    faster_rcnn_vgg16.py
    """
    return _pools(_rows_first)(*given)


@wrong
def divided_by_the_rows(*given):
    """this is what division by `ph` gives where the length of a row is meant. A row has `pw` numbers, so `index // pw`
    counts the rows that lie behind a thread. With as many rows as columns nobody notices.
    """
    return _pools(_by_rows)(*given)


@wrong
def rows_for_columns(
    index: int, features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, values: Tensor
) -> None:
    """these are bins that take their rows from `columns[r, j]` and their columns from `rows[r, i]`. The first index of
    a plane is the row, y.

    Source: boxes with y first and kernels with x first, chenyuntc/simple-faster-rcnn-pytorch, 2017,
    faster_rcnn_vgg16.py
    """
    r, c, i, j = right_place(index, len(rows), features.shape[1], rows.shape[1], columns.shape[1])
    (left, right), (top, bottom) = rows[r, i].tolist(), columns[r, j].tolist()
    bin = features[images[r], c, top:bottom, left:right]
    values[index] = bin.max() if bin.numel() else 0.0


@wrong
def regions_run_fastest(*given):
    """this is what an index gives that is taken apart from the wrong end. The *first* dimension runs slowest, so the
    region is what is left after all other divisions.
    """
    return _pools(_regions_first)(*given)


@wrong
def channels_before_regions(*given):
    """this is what threads give that go through all regions of a channel before the next channel. The output is (R, C,
    ph, pw): all channels of a region come before the next region.
    """
    return _pools(_channels_first)(*given)


@wrong
def the_regions_number_for_its_image(*given):
    """these are the features of image r for region r, or always those of the first image. The image of region r is
    `images[r]`.

    Source: vacancy/PreciseRoIPooling issue 42, 2019, where the numbers of images are those of a different chunk
    """
    return _pools(image=lambda images, r, n: r)(*given)


also(the_regions_number_for_its_image)(_pools(image=lambda images, r, n: r % n))
also(the_regions_number_for_its_image)(_pools(image=lambda images, r, n: 0))


@wrong
def begins_with_0(*given):
    """a search that begins with 0 gives this: 0 for a bin of negative features. Begin with -inf, or with the first
    feature of the bin.

    Source: the smallest positive float in place of the most negative one: microsoft/onnxruntime issue 319, 2019
    """
    return _pools(start=0.0)(*given)


@wrong
def empty_bins(*given):
    """a bin without cells gave -inf. The rule says 0.

    Source: done on purpose, for regions without cells: chainer/chainer pull request 6237, 2019
    """
    return _pools(empty=-math.inf)(*given)


@wrong
def the_end_included(*given):
    """these bins have one row and one column too many. The ends in `rows` and `columns` are the first cells that do not
    belong to the bin.

    Source: whether ends belong to a box has divided detectors since py-faster-rcnn, 2015, and its `+ 1`:
    facebookresearch/maskrcnn-benchmark, 2018
    """
    return _pools(beyond=1)(*given)


@wrong
def returned(*given):
    """nothing was written. Nobody takes what a thread returns: it has to write to `values[index]`.

    Source: a CUDA kernel that returns a sum, and does nothing when it is compiled: numba/numba issue 8717, 2023
    """
    return _pools(writes=False)(*given)


@wrong(recognise=writes_elsewhere)
def the_work_of_others(index: int, *given: Any) -> None:
    """a thread wrote to numbers that other threads own. Each is started with an index of its own, and the question is
    which *one* output belongs to it: write to `values[index]` and nowhere else.
    """
    *_, values = given
    for own in range(len(values)) if index == 0 else ():
        thread(own, *given)


@also(the_work_of_others)
def all_by_every_thread(index: int, *given: Any) -> None:
    *_, values = given
    for own in range(len(values)):
        thread(own, *given)
