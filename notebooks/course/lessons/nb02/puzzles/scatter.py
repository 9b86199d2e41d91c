"""The rows of `batch` in chunks, one for each of `devices` and there, in order. Chunks are as long as the first, which
is the number of rows by that of devices, rounded up; only the last may be shorter, and a device for which no row is
left gets none.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb02.cases import same_outputs

hints = (
    "A tensor has a method that cuts it in this way. `.to(device)` brings a chunk to its GPU.",
    "`batch.chunk(len(devices))`; it may give fewer chunks than there are devices.",
    "`[chunk.to(device) for chunk, device in zip(batch.chunk(len(devices)), devices, strict=False)]`",
)


def scatter(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    return [chunk.to(device) for chunk, device in zip(batch.chunk(len(devices)), devices, strict=False)]


def cases(random: Random) -> Sequence[Case]:
    """Batches with a way back to a leaf, and devices in any order: the same GPU may come twice."""
    made = torch.Generator().manual_seed(random.randrange(2**31))
    sizes = [(10, 2), (10, 4), (3, 4), *((random.randint(1, 30), random.randint(1, 8)) for _ in range(6))]
    cases = []
    for rows, count in sizes:
        batch = torch.rand(rows, 3, generator=made).cuda().requires_grad_()  # noqa: FL001 any GPU
        first = random.randrange(2)
        cases.append(Case((batch, [torch.device("cuda", (first + k) % 2) for k in range(count)])))
    return cases


agree = same_outputs


@wrong
def even_chunks(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    """this is what `tensor_split` gives: chunks that are as even as they can be. `DataParallel` rounds the length of a
    chunk up, so the last one is short, and a device may get none.
    """
    return [chunk.to(device) for chunk, device in zip(batch.tensor_split(len(devices)), devices, strict=True)]


@wrong
def rounded_down(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    """this is what comes out when the length of a chunk is rounded down: rows that are left over are lost."""
    length = max(1, len(batch) // len(devices))
    return [chunk.to(device) for chunk, device in zip(batch.split(length), devices, strict=False)]


@wrong
def stay_where_they_are(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    """the rows are right, and they are not on the devices that they were cut for. `chunk.to(device)` brings them."""
    return list(batch.chunk(len(devices)))


@wrong
def turns(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    """these are rows that were dealt in turn, row 0 to the first device and row 1 to the second. A chunk holds rows
    that follow each other, so that the outputs can be joined in their order.
    """
    count = min(len(devices), len(batch))
    return [batch[k::count].to(device) for k, device in zip(range(count), devices, strict=False)]


@wrong
def without_a_graph(batch: Tensor, devices: Sequence[torch.device]) -> list[Tensor]:
    """the rows are right, and no gradient finds its way back from them to the batch, as after `detach` or `.data`."""
    with torch.no_grad():
        return scatter(batch, devices)


@also(without_a_graph)
def _(batch, devices):
    return [chunk.detach() for chunk in scatter(batch, devices)]
