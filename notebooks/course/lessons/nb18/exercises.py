"""Exercises of notebook 18: a layer in NumPy, class weights that stay finite, a test for a layer on any GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Mistake, Trial
from frcnn_lite import ops

POST = "the post on a multi-GPU Faster R-CNN, about 2017"


# ---- 18.in_numpy


@dataclass(frozen=True)
class Current(Case):
    """A call while the GPU number `gpu` is current."""

    gpu: int = 0

    def call(self, function: Callable[..., Any]) -> Any:
        with torch.cuda.device(self.gpu):
            return super().call(function)

    def show(self, name: str) -> str:
        return f"{super().show(name)} while cuda:{self.gpu} is current"


@dataclass(frozen=True)
class BestBoxes:
    """Scores, boxes and a list in, the best `count` boxes, their labels and a mask out, all of them arrays."""

    count: int

    def __call__(self, scores: np.ndarray, boxes: np.ndarray, classes: list[str]) -> tuple[np.ndarray, ...]:
        if not isinstance(classes, list):
            raise TypeError(f"classes must be the list of names that was given, got {type(classes).__name__}")
        order = np.argsort(-scores, kind="stable")[: self.count]
        return boxes[order], order % len(classes), scores[order] > 0.5

    def __repr__(self) -> str:
        return f"<the best {self.count} boxes, in NumPy>"


def in_numpy(function: Callable[..., tuple[np.ndarray, ...]], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    arrays = [x.detach().cpu().numpy() if isinstance(x, Tensor) else x for x in (scores, *others)]  # noqa: FL006 on purpose
    return tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))  # noqa: FL006 on purpose


def _brought(bring: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    def answer(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
        return tuple(bring(result.cpu(), scores) for result in in_numpy(function, scores, *others))

    return answer


def _others_as_they_are(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    arrays = function(scores.detach().cpu().numpy(), *others)  # noqa: FL006 on purpose
    return tuple(torch.from_numpy(array).to(scores.device) for array in arrays)  # noqa: FL006 on purpose


def _others_as_arrays(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    arrays = (x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x) for x in others)  # noqa: FL006 on purpose
    return _others_as_they_are(function, scores, *arrays)


def _others_as_tensors(function: Callable[..., Any], scores: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return _others_as_they_are(function, scores, *(x.detach().cpu().numpy() for x in others))  # noqa: FL006 on purpose


def _entered(result: Tensor, scores: Tensor) -> Tensor:
    with torch.cuda.device(scores.get_device()):
        return result.cuda()


def _layer_cases(random: Random) -> Sequence[Case]:
    """Scores on several devices while different ones are current; boxes as a tensor or as an array."""
    places = [("cuda:1", 0), ("cuda:0", 1), ("cuda:1", 1), ("cpu", 0)]
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases: list[Case] = []
    for k, (device, current) in enumerate(places * 2):
        n = 6 if k == 0 else random.randint(3, 12)
        scores = torch.rand(n, generator=generator).to(device).requires_grad_()
        boxes = torch.rand(n, 4, generator=generator)
        given = boxes.numpy() if k % 2 == 0 else boxes.to(device).requires_grad_()
        cases.append(Current((BestBoxes(random.randint(1, n)), scores, given, ["disc", "square", "star"]), gpu=current))
    return cases


def _same_tensors(given: Any, expected: tuple[Tensor, ...]) -> bool:
    pairs = zip(given, expected, strict=True)
    return all(a.device == b.device and a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


# ---- 18.class_weights


def same_tensor(given: Any, expected: Tensor) -> bool:
    return (
        given.device == expected.device
        and given.shape == expected.shape
        and bool(torch.allclose(given, expected, equal_nan=True))
    )


def class_weights(labels: Tensor, classes: int) -> Tensor:
    foreground = (labels > 0).sum()
    background = labels.numel() - foreground
    weights = torch.ones(classes, device=labels.device)
    both = (foreground > 0) & (background > 0)
    weights[0] = torch.where(both, foreground / background.clamp(min=1), 1)
    return weights


def _weighed(background: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, int], Tensor]:
    """An answer whose weight of class 0 is `background` of the two counts."""

    def answer(labels: Tensor, classes: int) -> Tensor:
        foreground = (labels > 0).sum()
        weights = torch.ones(classes, device=labels.device)
        weights[0] = background(foreground, labels.numel() - foreground)
        return weights

    return answer


def _with_epsilon(labels: Tensor, classes: int) -> Tensor:
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground + 1e-4)
    return weights


def _divided(labels: Tensor, classes: int) -> Tensor:
    weights = torch.ones(classes, device=labels.device)
    foreground = (labels > 0).sum()
    weights[0] = foreground / (labels.numel() - foreground)
    return weights


def _label_cases(random: Random) -> Sequence[Case]:
    """Labels (S,) on several devices; the first sets lack foreground or background, and the last has no row."""
    fixed = [("cuda:1", [0, 0, 0]), ("cuda:0", [3, 1]), ("cpu", [2, 0, 0, 0]), ("cuda:1", [0]), ("cuda:1", [])]
    drawn = [("cuda:1", [random.choice([0, 0, 1, 2, 3]) for _ in range(random.randint(5, 40))]) for _ in range(8)]
    named = [(torch.tensor(labels, device=device, dtype=torch.int64), 4) for device, labels in fixed + drawn]
    more = random.randint(5, 12)
    named.append((torch.tensor([0, more - 1, 0]).to(named[0][0].device), more))
    return [Case(args) for args in named]


# ---- 18.test_pool

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


def _pool_cases(random: Random) -> Sequence[Case]:
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


def _shapes(layer: Pool, right: Pool) -> None:
    features, boxes = torch.rand(2, 3, 8, 8), torch.tensor([[0.0, 0, 5, 5], [2, 1, 7, 6]]).repeat(2, 1, 1)
    for gpu in ("cuda:0", "cuda:1"):
        assert layer(features.to(gpu), boxes.to(gpu)).shape == right(features, boxes).shape


BOTH = ("cuda:0", "cuda:1")

EXERCISES = (
    Exercise(
        key="18.in_numpy",
        task="Call `function`, which takes and returns NumPy arrays, with `scores` and `others`: tensors become "
        "arrays, everything else stays as it is. It returns a tuple of arrays; return them as tensors, each in its "
        "own dtype, on the device of `scores`.",
        reference=in_numpy,
        cases=_layer_cases,
        agree=_same_tensors,
        hints=(
            "The way there: `x.detach().cpu().numpy()`, and only for what is a tensor.",
            "The way back: which device is right, whatever is current? Ask `scores`.",
            "`tuple(torch.from_numpy(array).to(scores.device) for array in function(*arrays))`",
        ),
        mistakes=(
            Mistake(
                "on the current device",
                "this is what a function gives that brings its results to the current device. It is right while "
                "somebody has entered the device of `scores`, and wrong in a thread of one's own.",
                POST + ", before its repair",
                answers=(_brought(lambda result, scores: result.cuda()),),
            ),
            Mistake(
                "entered the device",
                "this is right on GPUs. It is how a function ends that asks `get_device()` and calls `.cuda()`: for "
                "scores on the CPU the number is -1, which enters nothing, so the results go to a GPU; and `.cuda(-1)` "
                "raises.",
                POST + ", its repair",
                answers=(_brought(_entered), _brought(lambda result, scores: result.cuda(scores.get_device()))),
            ),
            Mistake(
                "a GPU by number",
                "this is what the number of a GPU gives, written into the function. The scores may be on a different "
                "one: ask them, `scores.device`.",
                "longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU to test on",
                answers=(_brought(lambda result, scores: result.to("cuda:0")),),  # noqa: FL004 the mistake itself
            ),
            Mistake(
                "left on the CPU",
                "these results stay on the CPU, where NumPy made them. They belong on the device of the scores.",
                answers=(_brought(lambda result, scores: result),),
            ),
            Mistake(
                "the others",
                "of `others`, too, the tensors become arrays, and everything else is handed over as it is: an array "
                "has no `.cpu()`, and a list stays a list. Ask `isinstance(x, torch.Tensor)` for each.",
                answers=(_others_as_they_are, _others_as_tensors, _others_as_arrays),
            ),
            Mistake(
                "labels became floats",
                "every result is a float here. Labels are integers, and cross_entropy refuses them as floats.",
                "the default of `np_to_variable` in " + POST,
                answers=(_brought(lambda result, scores: result.float().to(scores.device)),),
            ),
        ),
    ),
    Exercise(
        key="18.class_weights",
        task="Weights (classes,) for cross_entropy on labels (S,), on their device: the background, class 0, weighs "
        "foreground / background, every other class 1; without foreground, or without background, all weigh 1.",
        reference=class_weights,
        cases=_label_cases,
        agree=same_tensor,
        hints=(
            "Count first: foreground is `(labels > 0).sum()`, background the rest. What if one of them is 0?",
            "A background weight of 0 makes an image without objects 0 / 0: cross_entropy divides by the sum of the "
            "weights, since torch 1.11 also where that is 0.",
            "`torch.where((foreground > 0) & (background > 0), foreground / background.clamp(min=1), 1)`",
        ),
        mistakes=(
            Mistake(
                "epsilon below the line",
                "these are the weights of a guard for the division alone, by 1e-4 or otherwise. Without foreground the "
                "weight of the background is 0, or as good as 0. Since torch 1.11 cross_entropy then divides 0 by 0; "
                "until 1.10 such a loss was 0.",
                POST,
                answers=(
                    _with_epsilon,
                    _weighed(lambda foreground, background: foreground / background if background else 1),
                    _weighed(lambda foreground, background: foreground / background.clamp(min=1)),
                    _weighed(lambda foreground, background: (foreground + 1e-4) / (background + 1e-4)),
                ),
            ),
            Mistake(
                "no guard",
                "this divides by the number of background rows. It can be 0.",
                "longcw/faster_rcnn_pytorch issue 53, 2017",
                answers=(
                    _divided,
                    _weighed(lambda foreground, background: foreground / background if foreground else 1),
                ),
            ),
            Mistake(
                "a count that is 1 at least",
                "this is what comes out when at least one of each is counted: without foreground the background "
                "weighs 1 / background, and all classes should weigh 1.",
                answers=(_weighed(lambda foreground, background: foreground.clamp(min=1) / background.clamp(min=1)),),
            ),
            Mistake(
                "upside down",
                "this is background divided by foreground. There is far more background, and its weight is to make up "
                "for that: foreground / background.",
                answers=(
                    _weighed(
                        lambda foreground, background: background / foreground if foreground and background else 1
                    ),
                ),
            ),
            Mistake(
                "a share of all rows",
                "this is divided by the number of all rows. The weight is foreground / background.",
                answers=(
                    _weighed(
                        lambda foreground, background: (
                            foreground / (foreground + background) if foreground and background else 1
                        )
                    ),
                ),
            ),
            Mistake(
                "on the current device",
                "these weights are on the CPU or on the current device. Labels may lie on a different one.",
                POST + ", before its repair",
                answers=(
                    lambda labels, classes: class_weights(labels, classes).cuda(),
                    lambda labels, classes: class_weights(labels, classes).cpu(),
                ),
            ),
        ),
    ),
    Exercise(
        key="18.test_pool",
        task="A test for a pooling layer that is called as `layer(features, boxes)`. It passes for a layer that is "
        "right on every GPU and fails for one that is not. `right(features, boxes)` gives the right result on the CPU.",
        reference=test_pool,
        cases=_pool_cases,
        hints=(
            "`cuda:0` is current. On which GPU does a bare `.cuda()` go unnoticed, and on which does it not?",
            "Two images with different features, the same layer on cuda:0 first and then on cuda:1.",
            "For each GPU: call the layer, `assert str(out.device) == gpu`, and then "
            "`torch.testing.assert_close(out.cpu(), right(features, boxes))`.",
        ),
        mistakes=(
            Mistake(
                "the first GPU only",
                "this is how a test ends that runs on cuda:0 alone, where every fault of devices is right by accident.",
                "longcw/faster_rcnn_pytorch issue 3, 2017, whose author had one GPU to test on",
                answers=(_test_on(("cuda:0",)), _test_on(("cuda:0",), place=False)),
            ),
            Mistake(
                "the second GPU only",
                "a layer that keeps a tensor of its first call passes this test. It is right in its first call, on any "
                "device, and breaks when a different GPU calls it with the same sizes: call it on cuda:0 and cuda:1.",
                "the cache of pytorch/vision issue 1255, 2019",
                answers=(_test_on(("cuda:1",)),),
            ),
            Mistake(
                "enters the GPU",
                "this is how a test ends that enters the GPU before it calls the layer, as DataParallel does: there a "
                "bare `.cuda()` is right.",
                "torch's own `parallel_apply`, which enters it since pytorch/pytorch pull request 1880, 2017",
                answers=(_test_on(BOTH, enter=True),),
            ),
            Mistake(
                "one image",
                "a layer that takes every box from image 0 passes this test. Either it has one image, or all its "
                "images are equal, or it does not compare the values.",
                POST + ", which has one image on each GPU",
                answers=(_test_on(BOTH, images=1),),
            ),
            Mistake(
                "values only",
                "this is how a test ends that compares values and not the place. A result that was left on cuda:0 has "
                "the right values.",
                "`assert_close` compares devices, too, since torch 1.9 of 2021; `.cpu()` on both sides hides them",
                answers=(_test_on(BOTH, place=False), _test_on(("cuda:1",), place=False)),
            ),
            Mistake(
                "never fails",
                "every layer passes this test. A test fails by raising an error, and one that *returns* False has "
                "passed; write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(lambda layer, right: None,),
            ),
            Mistake(
                "shapes only",
                "this is how a test ends that looks at the shape of the result. Right or wrong, it has the same.",
                answers=(_shapes,),
            ),
        ),
    ),
)
