"""Exercises of notebook 17: one thread of RoI pooling, and one that goes back and shares with nobody."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import TODO, Case, Exercise, Mistake
from frcnn_lite import ops


@dataclass(frozen=True)
class _Launch(Case):
    """A launch of the reader's thread, once for each number of `out`, in a mixed order; the result is what they wrote.

    Each thread gets a memory of its own, in which it may write its own number only: no other has been there.
    """

    order: tuple[int, ...] = ()
    words: str = ""

    def call(self, function: Callable[..., Any]) -> Any:
        *given, out = self.args
        together = torch.full_like(out, math.nan).flatten()
        for index in self.order:
            written = torch.full_like(out, math.nan)
            if function(index, *given, written) is TODO:
                return TODO
            written = written.flatten()
            together[index] = written[index]
            if not written[torch.arange(len(written)) != index].isnan().all():
                return f"thread {index} wrote to other numbers than its own"
        return together.view_as(out).tolist()

    def show(self, name: str) -> str:
        return f"{name}, launched for {self.words},"


# ---- 17.thread -------------------------------------------------------------------------------------------------------


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


def _right_place(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    return index // pw // ph // channels, index // pw // ph % channels, index // pw % ph, index % pw


def _rows_first(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    return index // pw // ph // channels, index // pw // ph % channels, index % ph, index // ph % pw


def _by_rows(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    """Divides by the number of rows where the length of a row is meant."""
    return index // ph // pw // channels, index // ph // pw % channels, index // ph % ph, index % pw


def _regions_first(index: int, regions: int, channels: int, ph: int, pw: int) -> tuple[int, int, int, int]:
    rest = index // regions
    return index % regions, rest % channels, rest // channels % ph, rest // channels // ph


def _pools(
    place: Place = _right_place,
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


def _all_by_thread_0(index: int, *given: Any) -> None:
    *_, values = given
    for own in range(len(values)) if index == 0 else ():
        thread(own, *given)


def _all_by_every_thread(index: int, *given: Any) -> None:
    *_, values = given
    for own in range(len(values)):
        thread(own, *given)


def _writes_elsewhere(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return any(isinstance(result, str) for result in given)


def _transposed(index: int, features: Tensor, images: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> None:
    r, c, i, j = _right_place(index, len(rows), features.shape[1], rows.shape[1], columns.shape[1])
    (left, right), (top, bottom) = rows[r, i].tolist(), columns[r, j].tolist()
    bin = features[images[r], c, top:bottom, left:right]
    values[index] = bin.max() if bin.numel() else 0.0


def _pool_cases(random: Random) -> Sequence[Case]:
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
        cases.append(_Launch((features, images, rows, columns, out), order=order, words=words))
    return cases


def _box(random: Random) -> list[int]:
    x, y = random.randint(0, 30), random.randint(0, 20)
    return [x, y, x + random.randint(8, 30), y + random.randint(8, 24)]


# ---- 17.collect ------------------------------------------------------------------------------------------------------


def collect(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    channels, height, width = out.shape[1:]
    position, c, n = (
        index % (height * width),
        index // (height * width) % channels,
        index // (height * width) // channels,
    )
    total = 0.0
    for r in range(len(gradient)):
        if images[r] == n:
            total += float(gradient[r, c][argmax[r, c] == position].sum())
    out[n, c, position // width, position % width] = total


def _collects(
    every_image: bool = False,
    every_channel: bool = False,
    last_only: bool = False,
    count: bool = False,
    largest: bool = False,
    plane_too: bool = False,
) -> Callable[..., None]:
    """`collect` with one of its conditions left out, or with something different in the place of the sum."""

    def wrong(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
        channels, height, width = out.shape[1:]
        plane, position = index // (height * width), index % (height * width)
        n, c = plane // channels, plane % channels
        named = index if plane_too else position
        found: list[float] = []
        for r in range(len(gradient)):
            if every_image or images[r] == n:
                for k in range(channels) if every_channel else [c]:
                    found += gradient[r, k][argmax[r, k] == named].tolist()
        total = float(len(found)) if count else (found or [0.0])[-1] if last_only else sum(found)
        total = max(found, default=0.0) if largest else total
        out[n, c, position // width, position % width] = total

    return wrong


def _sends(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    """One thread for each output, as in the race; the launch has one for each cell."""
    r, c, i, j = _right_place(index, *gradient.shape)
    position = int(argmax[r, c, i, j])
    out[images[r], c].view(-1)[position] += gradient[r, c, i, j]


def _adds(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    before = out.clone()
    collect(index, gradient, argmax, images, out)
    out.copy_(out + before)


def _leaves_out(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    """Writes only where something is to be added."""
    channels, height, width = out.shape[1:]
    position, plane = index % (height * width), index // (height * width)
    own = [r for r in range(len(gradient)) if images[r] == plane // channels]
    hits = [gradient[r, plane % channels][argmax[r, plane % channels] == position] for r in own]
    if sum(map(len, hits)):
        total = float(sum(float(hit.sum()) for hit in hits))
        out[plane // channels, plane % channels, position // width, position % width] = total


def _all_cells_by_thread_0(index: int, *given: Any) -> None:
    *_, out = given
    for own in range(out.numel()) if index == 0 else ():
        collect(own, *given)


def _collect_cases(random: Random) -> Sequence[Case]:
    cases = []
    for n, channels, regions in [(1, 1, 2), (2, 1, 2), (2, 2, 3), *((2, 2, random.randint(2, 4)) for _ in range(3))]:
        images = torch.tensor([random.randrange(n) for _ in range(regions)])
        shape = (regions, channels, 2, 2)
        drawn = [random.randint(-1, 5) for _ in range(math.prod(shape))]
        argmax = torch.tensor(drawn, dtype=torch.int32).view(shape)
        gradient = torch.tensor([random.randint(-20, 20) / 8 for _ in drawn]).view(shape)
        out = torch.zeros(n, channels, 2, 3)
        words = f"the {out.numel()} cells of {tuple(out.shape)}, with argmax {argmax.flatten().tolist()}"
        order = tuple(random.sample(range(out.numel()), out.numel()))
        cases.append(_Launch((gradient, argmax, images, out), order=order, words=words))
    return cases


def _same_numbers(given: Any, expected: Any) -> bool:
    """Equal, and what was not written (NaN) in the same places."""
    return bool(torch.equal(*(torch.tensor(numbers).nan_to_num(nan=12345.0) for numbers in (given, expected))))


EXERCISES = (
    Exercise(
        key="17.thread",
        task="One thread of RoI pooling: write the largest feature of the bin to which `index` leads.",
        reference=thread,
        cases=_pool_cases,
        agree=_same_numbers,
        hints=(
            "First the four lines of `place`. Its sizes are `features.shape[1]`, `rows.shape[1]` and "
            "`columns.shape[1]`.",
            "Then the edges, `top, bottom = rows[r, i].tolist()`, and a loop over `range(top, bottom)` with one over "
            "the columns inside. The plane is `features[images[r], c]`.",
            "Begin with `best = -math.inf`, or with 0 where `top == bottom` or `left == right`, and end with "
            "`values[index] = best`.",
        ),
        mistakes=(
            Mistake(
                "rows before columns",
                "this is the memory of threads that take the row from the remainder. The last dimension runs fastest "
                "in memory: the remainder by `pw` is the column.",
                "boxes with y first and kernels with x first, chenyuntc/simple-faster-rcnn-pytorch, 2017, "
                "faster_rcnn_vgg16.py",
                answers=(_pools(_rows_first),),
            ),
            Mistake(
                "divided by the rows",
                "this is what division by `ph` gives where the length of a row is meant. A row has `pw` numbers, so "
                "`index // pw` counts the rows that lie behind a thread. With as many rows as columns nobody notices.",
                answers=(_pools(_by_rows),),
            ),
            Mistake(
                "rows for columns",
                "these are bins that take their rows from `columns[r, j]` and their columns from `rows[r, i]`. The "
                "first index of a plane is the row, y.",
                "boxes with y first and kernels with x first, chenyuntc/simple-faster-rcnn-pytorch, 2017, "
                "faster_rcnn_vgg16.py",
                answers=(_transposed,),
            ),
            Mistake(
                "regions run fastest",
                "this is what an index gives that is taken apart from the wrong end. The *first* dimension runs "
                "slowest, so the region is what is left after all other divisions.",
                answers=(_pools(_regions_first),),
            ),
            Mistake(
                "the region's number for its image",
                "these are the features of image r for region r, or always those of the first image. Which image a "
                "region lies in is `images[r]`.",
                "vacancy/PreciseRoIPooling issue 42, 2019, where the numbers of images are those of a different chunk",
                answers=(
                    _pools(image=lambda images, r, n: r),
                    _pools(image=lambda images, r, n: r % n),
                    _pools(image=lambda images, r, n: 0),
                ),
            ),
            Mistake(
                "begins with 0",
                "a search that begins with 0 gives this: 0 for a bin of negative features. Begin with -inf, or with "
                "the first feature of the bin.",
                "the smallest positive float in place of the most negative one: microsoft/onnxruntime issue 319, 2019",
                answers=(_pools(start=0.0),),
            ),
            Mistake(
                "empty bins",
                "a bin without cells gave -inf. The rule says 0.",
                "done on purpose, for regions without cells: chainer/chainer pull request 6237, 2019",
                answers=(_pools(empty=-math.inf),),
            ),
            Mistake(
                "the end included",
                "these bins have one row and one column too many. The ends in `rows` and `columns` are the first cells "
                "that do not belong to the bin.",
                "whether ends belong to a box has divided detectors since py-faster-rcnn, 2015, and its `+ 1`: "
                "facebookresearch/maskrcnn-benchmark, 2018",
                answers=(_pools(beyond=1),),
            ),
            Mistake(
                "returned",
                "nothing was written. Nobody takes what a thread returns: it has to write to `values[index]`.",
                "a CUDA kernel that returns a sum, and does nothing when it is compiled: numba/numba issue 8717, 2023",
                answers=(_pools(writes=False),),
            ),
            Mistake(
                "the work of others",
                "a thread wrote to numbers that other threads own. Each is started with an index of its own, and the "
                "question is which *one* output belongs to it: write to `values[index]` and nowhere else.",
                answers=(_all_by_thread_0, _all_by_every_thread),
                recognise=_writes_elsewhere,
            ),
        ),
    ),
    Exercise(
        key="17.collect",
        task="One thread for each cell of `out` (N, C, H, W): write the sum of the gradients whose argmax it is.",
        reference=collect,
        cases=_collect_cases,
        agree=_same_numbers,
        hints=(
            "Which cell are you? Take `index` apart by the sizes of `out`. For the argmax you need `y * W + x`, which "
            "is `index % (H * W)`.",
            "Go through the regions, skip those with a different image, and look in your own channel only.",
            "`gradient[r, c][argmax[r, c] == position].sum()` is what region r sends to you. Write the total once, "
            "also where it is 0.",
        ),
        mistakes=(
            Mistake(
                "every image",
                "this is what threads collect that take from regions of other images as well. The same position exists "
                "in each image; compare `images[r]` with the image of the cell.",
                answers=(_collects(every_image=True),),
            ),
            Mistake(
                "every channel",
                "this is what threads collect that take from other channels as well. The same position exists in each "
                "plane.",
                answers=(_collects(every_channel=True),),
            ),
            Mistake(
                "the last one",
                "this keeps the last gradient instead of the sum. Bins overlap, so several outputs may name one cell.",
                answers=(_collects(last_only=True),),
            ),
            Mistake(
                "counted",
                "this counts the outputs that name a cell, which is the gradient of a sum. Add up what is in "
                "`gradient`.",
                "the test with a gradient of ones in the notes on simple-faster-rcnn-pytorch, 2017, would pass",
                answers=(_collects(count=True),),
            ),
            Mistake(
                "sends",
                "this is how a launch ends whose threads are those of outputs and send: there are as many threads as "
                "cells. Here each thread is one cell, collects what is sent to it, and writes to no other.",
                "torchvision's roi_pool_kernel.cu does it like that, with atomic additions, 2026",
                answers=(_sends,),
            ),
            Mistake(
                "not written",
                "cells without a gradient were left as they were. The memory of `out` is not cleared before the "
                "launch, so every thread has to write, also a 0.",
                "`torch.empty` in place of `zeros` is the usual way to it: pytorch/pytorch documentation of 2.15, 2026",
                answers=(_leaves_out,),
            ),
            Mistake(
                "added to what was there",
                "no sum arrived. Either a thread adds with `+=` to memory that nobody has cleared, where anything may "
                "stand, or it returns its number, which nobody takes. Write with `=`.",
                "a CUDA kernel that returns a sum: numba/numba issue 8717, 2023",
                answers=(_adds, lambda *given: None),
            ),
            Mistake(
                "the index for the position",
                "this compares argmax with the index of the thread. An argmax is a position in its own plane, and the "
                "index counts the planes before it, too.",
                answers=(_collects(plane_too=True),),
            ),
            Mistake(
                "the largest one",
                "this keeps the largest gradient. The maximum was taken in forward; in backward everything that was "
                "sent to a cell is added up.",
                answers=(_collects(largest=True),),
            ),
            Mistake(
                "the work of others",
                "a thread wrote to cells that other threads own. Each cell has a thread of its own: write to the one "
                "that the index leads to, and nowhere else.",
                answers=(_all_cells_by_thread_0,),
                recognise=_writes_elsewhere,
            ),
        ),
    ),
)
