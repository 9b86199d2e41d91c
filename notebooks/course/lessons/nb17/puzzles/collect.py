"""One thread for each cell of `out` (N, C, H, W): write the sum of the gradients whose argmax it is."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb17.cases import Launch, right_place, same_numbers, writes_elsewhere

hints = (
    "Which cell are you? Take `index` apart by the sizes of `out`. For the argmax you need `y * W + x`, which "
    "is `index % (H * W)`.",
    "Go through the regions, skip those with a different image, and look in your own channel only.",
    "`gradient[r, c][argmax[r, c] == position].sum()` is what region r sends to you. Write the total once, "
    "also where it is 0.",
)


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


def cases(random: Random) -> Sequence[Case]:
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
        cases.append(Launch((gradient, argmax, images, out), order=order, words=words))
    return cases


agree = same_numbers


@wrong
def looks_at_every_image(*given):
    """this is what threads collect that take from regions of other images as well. The same position exists in each
    image; compare `images[r]` with the image of the cell.
    """
    return _collects(every_image=True)(*given)


@wrong
def looks_at_every_channel(*given):
    """this is what threads collect that take from other channels as well. The same position exists in each plane."""
    return _collects(every_channel=True)(*given)


@wrong
def overwritten_by_the_next_region(
    index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor, always: bool = True
) -> None:
    """this writes what each region sends over what came before, so only the last region counts. Add up over all regions
    first, and write once, also where the total is 0.
    """
    channels, height, width = out.shape[1:]
    position, c, n = (
        index % (height * width),
        index // (height * width) % channels,
        index // (height * width) // channels,
    )
    for r in range(len(gradient)):
        own = argmax[r, c] == position
        if images[r] == n and (always or own.any()):
            out[n, c, position // width, position % width] = gradient[r, c][own].sum()


@also(overwritten_by_the_next_region)
def where_something_comes(*given: Any) -> None:
    overwritten_by_the_next_region(*given, always=False)


@wrong
def the_last_one(*given):
    """this keeps the last gradient instead of the sum. Bins overlap, so several outputs may name one cell."""
    return _collects(last_only=True)(*given)


@wrong
def counted(*given):
    """this counts the outputs that name a cell, which is the gradient of a sum. Add up what is in `gradient`.

    Source: the test with a gradient of ones in the notes on simple-faster-rcnn-pytorch, 2017, would pass
    """
    return _collects(count=True)(*given)


@wrong
def sends(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    """this is how a launch ends whose threads are those of outputs and send: there are as many threads as cells. Here
    each thread is one cell, collects what is sent to it, and writes to no other.

    Source: torchvision's roi_pool_kernel.cu does it like that, with atomic additions, 2026
    """
    # One thread for each output, as in the race; the launch has one for each cell.
    r, c, i, j = right_place(index, *gradient.shape)
    position = int(argmax[r, c, i, j])
    out[images[r], c].view(-1)[position] += gradient[r, c, i, j]


@wrong
def not_written(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    """cells without a gradient were left as they were. The memory of `out` is not cleared before the launch, so every
    thread has to write, also a 0.

    Source: `torch.empty` in place of `zeros` is the usual way to it: pytorch/pytorch documentation of 2.15, 2026
    """
    # Writes only where something is to be added.
    channels, height, width = out.shape[1:]
    position, plane = index % (height * width), index // (height * width)
    own = [r for r in range(len(gradient)) if images[r] == plane // channels]
    hits = [gradient[r, plane % channels][argmax[r, plane % channels] == position] for r in own]
    if sum(map(len, hits)):
        total = float(sum(float(hit.sum()) for hit in hits))
        out[plane // channels, plane % channels, position // width, position % width] = total


@wrong
def added_to_what_was_there(index: int, gradient: Tensor, argmax: Tensor, images: Tensor, out: Tensor) -> None:
    """no sum arrived. Either a thread adds with `+=` to memory that nobody has cleared, where anything may stand, or it
    returns its number, which nobody takes. Write with `=`.

    Source: a CUDA kernel that returns a sum: numba/numba issue 8717, 2023
    """
    before = out.clone()
    collect(index, gradient, argmax, images, out)
    out.copy_(out + before)


@also(added_to_what_was_there)
def _(*given):
    pass


@wrong
def the_index_for_the_position(*given):
    """this compares argmax with the index of the thread. An argmax is a position in its own plane, and the index counts
    the planes before it, too.
    """
    return _collects(plane_too=True)(*given)


@wrong
def the_largest_one(*given):
    """this keeps the largest gradient. The maximum was taken in forward; in backward everything that was sent to a cell
    is added up.
    """
    return _collects(largest=True)(*given)


@wrong(recognise=writes_elsewhere)
def the_work_of_others(index: int, *given: Any) -> None:
    """a thread wrote to cells that other threads own. Each cell has a thread of its own: write to the one that the
    index leads to, and nowhere else.
    """
    *_, out = given
    for own in range(out.numel()) if index == 0 else ():
        collect(own, *given)
