"""A test for a pooling layer that is called as `layer(features, boxes)`. It passes for a layer that is right on every
GPU and fails for one that is not. `right(features, boxes)` gives the right result on the CPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Trial
from course.kit.learn.puzzle import also, wrong
from frcnn_lite import ops

hints = (
    "`cuda:0` is current. On which GPU does a bare `.cuda()` go unnoticed, and on which does it not?",
    "Two images with different features, the same layer on cuda:0 first and then on cuda:1.",
    "For each GPU: call the layer, `assert str(out.device) == gpu`, and then "
    "`torch.testing.assert_close(out.cpu(), right(features, boxes))`.",
)


Pool = Callable[[Tensor, Tensor], Tensor]


def pooled(features: Tensor, boxes: Tensor) -> Tensor:
    """(N, C, H, W) features and (N, K, 4) boxes, K for each image, to (N * K, C, 2, 2) maxima."""
    images, count = boxes.shape[:2]
    number = torch.arange(images, device=boxes.device).repeat_interleave(count)
    rois = torch.cat([number[:, None].to(boxes), boxes.flatten(0, 1)], dim=1)
    return ops.roi_pool(features, rois, 2, 1.0)


def _current_gpu(features: Tensor, boxes: Tensor) -> Tensor:
    out = torch.zeros(len(boxes.flatten(0, 1)), features.shape[1], 2, 2).cuda()  # noqa: FL001 the mistake itself
    return out + pooled(features, boxes)


def _always_image_0(features: Tensor, boxes: Tensor) -> Tensor:
    return pooled(features[:1], boxes.flatten(0, 1)[None])


def _left_on_gpu_0(features: Tensor, boxes: Tensor) -> Tensor:
    return pooled(features, boxes).to("cuda:0")  # noqa: FL004 on purpose


@dataclass
class _Cached:
    """Keeps the image numbers of its first call, on the GPU where that call was made."""

    kept: dict[tuple[int, ...], Tensor] = field(default_factory=dict)

    def __call__(self, features: Tensor, boxes: Tensor) -> Tensor:
        images, count = boxes.shape[:2]
        if (images, count) not in self.kept:
            number = torch.arange(images, device=boxes.device).repeat_interleave(count)
            self.kept[images, count] = number[:, None].to(boxes)
        rois = torch.cat([self.kept[images, count], boxes.flatten(0, 1)], dim=1)
        return ops.roi_pool(features, rois, 2, 1.0)


@dataclass(frozen=True)
class Program:
    """Makes a layer, a fresh one for each trial; `words` say which one it is."""

    words: str
    make: Callable[[], Pool]
    number: int = 0

    def __repr__(self) -> str:
        return f"<{self.words}, trial {self.number}>"


class PoolTrial(Trial):
    """The reader's test is given the layer that the program makes, and the right one to compare with on the CPU."""

    def call(self, function: Callable[..., Any]) -> Any:
        program: Program = self.args[0]
        layer = program.make()
        with torch.cuda.device(0):  # noqa: FL004 as in a thread of one's own
            return Trial((layer, pooled)).call(function)

    def show(self, name: str) -> str:
        return f"{name} of {self.args[0]!r}"


_PROGRAMS = (
    ("a right layer", lambda: pooled),
    ("a layer with a bare .cuda()", lambda: _current_gpu),
    ("a layer that takes every box from image 0", lambda: _always_image_0),
    ("a layer that leaves its result on cuda:0", lambda: _left_on_gpu_0),
    ("a layer that keeps a tensor of its first call", _Cached),
)


def cases(random: Random) -> Sequence[Case]:
    cases = [PoolTrial((Program(words, make),)) for words, make in _PROGRAMS]
    drawn = random.sample(_PROGRAMS, len(_PROGRAMS))
    return cases + [PoolTrial((Program(words, make, random.randint(1, 999)),)) for words, make in drawn]


def test_pool(layer: Pool, right: Pool) -> None:
    features, boxes = torch.rand(2, 3, 8, 8), torch.tensor([[0.0, 0, 5, 5], [2, 1, 7, 6]]).repeat(2, 1, 1)
    for gpu in ("cuda:0", "cuda:1"):  # the same layer on both
        out = layer(features.to(gpu), boxes.to(gpu))
        assert str(out.device) == gpu, f"the result is on {out.device}"
        torch.testing.assert_close(out.cpu(), right(features, boxes))


def _test_on(
    gpus: Sequence[str], images: int = 2, enter: bool = False, place: bool = True
) -> Callable[[Pool, Pool], None]:
    def answer(layer: Pool, right: Pool) -> None:
        features, boxes = torch.rand(images, 3, 8, 8), torch.tensor([[0.0, 0, 5, 5], [2, 1, 7, 6]]).repeat(images, 1, 1)
        for gpu in gpus:
            with torch.cuda.device(gpu if enter else "cuda:0"):  # noqa: FL004 on purpose
                out = layer(features.to(gpu), boxes.to(gpu))
            assert not place or str(out.device) == gpu
            torch.testing.assert_close(out.cpu(), right(features, boxes))

    return answer


BOTH = ("cuda:0", "cuda:1")


@wrong
def the_first_GPU_only(*given):
    """this is how a test ends that runs on cuda:0 alone, where every fault of devices is right by accident.

    Source: longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU to test on
    """
    return _test_on(("cuda:0",))(*given)


also(the_first_GPU_only)(_test_on(("cuda:0",), place=False))


@wrong
def the_second_GPU_only(*given):
    """a layer that keeps a tensor of its first call passes this test. It is right in its first call, on any device, and
    breaks when a different GPU calls it with the same sizes: call it on cuda:0 and cuda:1.

    Source: the cache of pytorch/vision issue 1255, 2019
    """
    return _test_on(("cuda:1",))(*given)


@wrong
def enters_the_GPU(*given):
    """this is how a test ends that enters the GPU before it calls the layer, as DataParallel does: there a bare
    `.cuda()` is right.

    Source: torch's own `parallel_apply`, which enters it since pytorch/pytorch pull request 1880, 2017
    """
    return _test_on(BOTH, enter=True)(*given)


@wrong
def one_image(*given):
    """a layer that takes every box from image 0 passes this test. Either it has one image, or all its images are equal,
    or it does not compare the values.

    Source: the post on a multi-GPU Faster R-CNN, about 2017, which has one image on each GPU
    """
    return _test_on(BOTH, images=1)(*given)


@wrong
def values_only(*given):
    """this is how a test ends that compares values and not the place. A result that was left on cuda:0 has the right
    values.

    Source: `assert_close` compares devices, too, since torch 1.9 of 2021; `.cpu()` on both sides hides them
    """
    return _test_on(BOTH, place=False)(*given)


also(values_only)(_test_on(("cuda:1",), place=False))


@wrong
def never_fails(layer, right):
    """every layer passes this test. A test fails by raising an error, and one that *returns* False has passed; write
    `assert`.

    Source: pytest warns about tests that return something since version 7.2, 2022
    """


@wrong
def shapes_only(layer: Pool, right: Pool) -> None:
    """this is how a test ends that looks at the shape of the result. Right or wrong, it has the same."""
    features, boxes = torch.rand(2, 3, 8, 8), torch.tensor([[0.0, 0, 5, 5], [2, 1, 7, 6]]).repeat(2, 1, 1)
    for gpu in ("cuda:0", "cuda:1"):
        assert layer(features.to(gpu), boxes.to(gpu)).shape == right(features, boxes).shape
