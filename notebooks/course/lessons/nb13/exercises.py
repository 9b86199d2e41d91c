"""Exercises of notebook 13: labels of anchors, a test for deltas, and areas where nobody has looked."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Exercise, Mistake, Program, Trial
from frcnn_lite import ops
from frcnn_lite.ops import box_iou

Encode = Callable[[Tensor, Tensor], Tensor]


def encode(boxes: Tensor, anchors: Tensor, extra: float = 0) -> Tensor:
    size, own = boxes[:, 2:] - boxes[:, :2] + extra, anchors[:, 2:] - anchors[:, :2] + extra
    middle, own_middle = boxes[:, :2] + size / 2, anchors[:, :2] + own / 2
    return torch.cat([(middle - own_middle) / own, torch.log(size / own)], dim=1)


def _by_edges(boxes: Tensor, anchors: Tensor) -> Tensor:
    """The same, from the sums of the edges."""
    own, size = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    shift = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / (2 * own)
    return torch.cat([shift, size.log() - own.log()], dim=1)


def _by_the_box(boxes: Tensor, anchors: Tensor) -> Tensor:
    deltas, size, own = encode(boxes, anchors), boxes[:, 2:] - boxes[:, :2], anchors[:, 2:] - anchors[:, :2]
    return torch.cat([deltas[:, :2] * own / size, deltas[:, 2:]], dim=1)


def _by_corners(boxes: Tensor, anchors: Tensor) -> Tensor:
    shift = (boxes[:, :2] - anchors[:, :2]) / (anchors[:, 2:] - anchors[:, :2])
    return torch.cat([shift, encode(boxes, anchors)[:, 2:]], dim=1)


def _without_logarithm(boxes: Tensor, anchors: Tensor) -> Tensor:
    deltas = encode(boxes, anchors)
    return torch.cat([deltas[:, :2], deltas[:, 2:].exp()], dim=1)


def _times(factor: int, boxes: Tensor, anchors: Tensor) -> Tensor:
    return encode(boxes, anchors) * factor


def _programs(random: Random) -> Sequence[Case]:
    """Two right programs and eight wrong ones."""
    right: dict[str, Encode] = {"by middles": encode, "by edges": _by_edges}
    wrong: dict[str, Encode] = {
        "with the + 1": lambda boxes, anchors: encode(boxes, anchors, extra=1),
        "y first": lambda boxes, anchors: encode(boxes, anchors)[:, [1, 0, 3, 2]],
        "the ratio upside down": lambda boxes, anchors: encode(boxes, anchors) * torch.tensor([1.0, 1, -1, -1]),
        "in sizes of the box": _by_the_box,
        "from corner to corner": _by_corners,
        "without the logarithm": _without_logarithm,
    }
    for factor in random.sample(range(2, 40), 2):
        wrong[f"times {factor}"] = partial(_times, factor)
    return [Trial((Program(f"encode: {name}", way),)) for name, way in {**right, **wrong}.items()]


def check_encode(encode: Encode) -> None:
    """There and back, for boxes that are not squares and lie beside their anchors."""
    anchors = torch.tensor([[10.0, 10, 30, 50], [0, 20, 8, 28]])
    boxes = torch.tensor([[14.0, 20, 44, 50], [3, 16, 9, 36]])
    back = ops.decode_boxes(encode(boxes, anchors), anchors, torch.ones(4))  # noqa: FL002 on the CPU
    torch.testing.assert_close(back, boxes)


def _there_and_back(encode: Encode, boxes: list[float], anchors: list[float]) -> tuple[Tensor, Tensor]:
    given, own = torch.tensor([boxes]), torch.tensor([anchors])
    return ops.decode_boxes(encode(given, own), own, torch.ones(4)), given  # noqa: FL002 on the CPU


def _equal_boxes(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [10.0, 10, 30, 50], [10.0, 10, 30, 50]))


def _diagonal_squares(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [14.0, 14, 44, 44], [10.0, 10, 30, 30]))


def _same_size(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [16.0, 14, 36, 54], [10.0, 10, 30, 50]))


def _same_size_and_ratio(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [15.0, 20, 35, 60], [10.0, 10, 30, 50]))


def _same_middle(encode: Encode) -> None:
    torch.testing.assert_close(*_there_and_back(encode, [5.0, 20, 35, 40], [10.0, 10, 30, 50]))


def _exchanged(encode: Encode) -> None:
    boxes, anchors = torch.tensor([[14.0, 20, 44, 50]]), torch.tensor([[10.0, 10, 30, 50]])
    back = ops.decode_boxes(encode(anchors, boxes), anchors, torch.ones(4))  # noqa: FL002 on the CPU
    torch.testing.assert_close(back, boxes)


def _loose(encode: Encode) -> None:
    back, boxes = _there_and_back(encode, [14.0, 20, 44, 50], [10.0, 10, 30, 50])
    assert (back - boxes).abs().max() < 1


def _returns_the_comparison(encode: Encode) -> bool:
    return torch.equal(*_there_and_back(encode, [14.0, 20, 44, 50], [10.0, 10, 30, 50]))


def anchor_labels(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    best, best_of_box = iou.amax(dim=0), iou.amax(dim=1, keepdim=True)
    rescued = ((iou == best_of_box) & (best_of_box > 0)).any(dim=0)
    labels = torch.full_like(best, -1, dtype=torch.int64)
    labels[best < negative_iou] = 0
    labels[(best >= positive_iou) | rescued] = 1
    return labels


def _background_last(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[iou.amax(dim=0) < negative_iou] = 0
    return labels


def _no_rescue(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    best = iou.amax(dim=0)
    return torch.where(best >= positive_iou, 1, torch.where(best < negative_iou, 0, -1))


def _one_of_equals(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = _no_rescue(iou, positive_iou, negative_iou)
    labels[iou.argmax(dim=1)[iou.amax(dim=1) > 0]] = 1
    return labels


def _padding_rescues(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = anchor_labels(iou, positive_iou, negative_iou)
    labels[(iou == iou.amax(dim=1, keepdim=True)).any(dim=0)] = 1
    return labels


def _argmax_of_padding(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = _no_rescue(iou, positive_iou, negative_iou)
    labels[iou.argmax(dim=1)] = 1
    return labels


def _best_of_each_anchor(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    labels = _no_rescue(iou, positive_iou, negative_iou)
    labels[iou.amax(dim=0) > 0] = 1  # (iou == iou.amax(dim=0)) & (iou > 0): every anchor has a best box
    return labels


def _own_thresholds(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    return anchor_labels(iou, 0.6, 0.3)


def _more_than(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    above = torch.tensor(positive_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return anchor_labels(iou, above, negative_iou)


def _up_to(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    above = torch.tensor(negative_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return anchor_labels(iou, positive_iou, above)


def _both_strict(iou: Tensor, positive_iou: float, negative_iou: float) -> Tensor:
    above = torch.tensor(positive_iou).nextafter(torch.tensor(1.0)).item()  # noqa: FL002 exercises are on the CPU
    return _up_to(iou, above, negative_iou)


def left_out(anchors: Tensor, areas: Tensor) -> Tensor:
    low = torch.maximum(anchors[:, None, :2], areas[:, :2])
    high = torch.minimum(anchors[:, None, 2:], areas[:, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2).sum(dim=1)
    return shared > 0.5 * (anchors[:, 2:] - anchors[:, :2]).prod(dim=1)


def _shared(anchors: Tensor, areas: Tensor) -> Tensor:
    sides = torch.minimum(anchors[:, None, 2:], areas[:, 2:]) - torch.maximum(anchors[:, None, :2], areas[:, :2])
    return sides.clamp(min=0).prod(dim=2)


def _by_iou(anchors: Tensor, areas: Tensor) -> Tensor:
    return (box_iou(anchors, areas) > 0.5).any(dim=1)


def _by_share_of_area(anchors: Tensor, areas: Tensor) -> Tensor:
    return (_shared(anchors, areas) > 0.5 * (areas[:, 2:] - areas[:, :2]).prod(dim=1)).any(dim=1)


def _shares(anchors: Tensor, areas: Tensor) -> Tensor:
    return _shared(anchors, areas) / (anchors[:, 2:] - anchors[:, :2]).prod(dim=1, keepdim=True)


def _area_by_area(anchors: Tensor, areas: Tensor) -> Tensor:
    return (_shares(anchors, areas) > 0.5).any(dim=1)


def _largest_share(anchors: Tensor, areas: Tensor) -> Tensor:
    return _shares(anchors, areas).amax(dim=1) > 0.5


def _not_clamped(anchors: Tensor, areas: Tensor) -> Tensor:
    sides = torch.minimum(anchors[:, None, 2:], areas[:, 2:]) - torch.maximum(anchors[:, None, :2], areas[:, :2])
    return sides.prod(dim=2).sum(dim=1) > 0.5 * (anchors[:, 2:] - anchors[:, :2]).prod(dim=1)


def _wholly_inside(anchors: Tensor, areas: Tensor) -> Tensor:
    low, high = anchors[:, None, :2] >= areas[:, :2], anchors[:, None, 2:] <= areas[:, 2:]
    return (low & high).all(dim=2).any(dim=1)


def _middle_inside(anchors: Tensor, areas: Tensor) -> Tensor:
    middle = (anchors[:, None, :2] + anchors[:, None, 2:]) / 2
    return ((middle >= areas[:, :2]) & (middle <= areas[:, 2:])).all(dim=2).any(dim=1)


def _any_overlap(anchors: Tensor, areas: Tensor) -> Tensor:
    return (_shared(anchors, areas) > 0).any(dim=1)


def _boxes(generator: torch.Generator, count: int) -> Tensor:
    corner = torch.rand(count, 2, generator=generator) * 80
    return torch.cat([corner, corner + 8 + torch.rand(count, 2, generator=generator) * 40], dim=1)


def _generator(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**32))


def _label_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    weak = torch.tensor([[0.9, 0.5, 0.1, 0.0], [0.0, 0.1, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]])
    drawn = [
        torch.cat([torch.rand(k, n, generator=generator) ** 3, torch.zeros(1, n)])
        for k, n in zip((1, 2, 4), random.sample(range(20, 60), 3), strict=True)
    ]
    equal = torch.tensor([[0.5, 0.1, 0.5, 0.4999], [0.0, 0.0, 0.0, 0.0]])  # the last is nearly as good
    on_the_thresholds = torch.tensor([[0.75, 1.0, 0.25, 0.125], [0.125, 0.0, 0.0, 0.1875]])
    edge = Case((on_the_thresholds, 0.75, 0.25))
    return [*(Case((iou, 0.7, 0.3)) for iou in (weak, equal)), edge, *(Case((iou, 0.7, 0.3)) for iou in drawn)]


def _area_cases(random: Random) -> Sequence[Case]:
    generator = _generator(random)
    anchors = torch.tensor([[10.0, 10.0, 30.0, 30.0], [90.0, 10.0, 110.0, 30.0], [0.0, 0.0, 120.0, 120.0]])
    wide = torch.tensor([[0.0, 0.0, 100.0, 100.0]])
    halves = torch.tensor([[0.0, 0.0, 60.0, 40.0], [60.0, 0.0, 120.0, 40.0]])
    between = torch.tensor([[50.0, 10.0, 70.0, 30.0], [45.0, 30.0, 65.0, 55.0]])  # across the line of the two halves
    fixed = [Case((anchors, wide)), Case((torch.cat([anchors, between]), halves)), Case((anchors, torch.zeros(0, 4)))]
    return fixed + [Case((_boxes(generator, n), _boxes(generator, 1) * 1.5)) for n in random.sample(range(8, 40), 6)]


def _same(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.equal(given, expected.to(given.dtype))


EXERCISES = (
    Exercise(
        key="13.anchor_labels",
        task="Labels (N,) of anchors from their IoU (M, N) with the true boxes: 1, 0, or -1 for those between.",
        reference=anchor_labels,
        cases=_label_cases,
        agree=_same,
        hints=(
            "Start with -1 everywhere, and set what you are sure of.",
            "Every true box makes its best anchors positive, however little they overlap. In which order do you write?",
            "A row of zeros is padding, or a box that no anchor touches: its best IoU is 0, and nobody's best is that.",
        ),
        mistakes=(
            Mistake(
                "background last",
                "here a rescued anchor whose IoU is below `negative_iou` is background after all. That comes of "
                "writing the background last, or of a rescue with a threshold of its own. A small box may have no "
                "better anchor, and then it has none at all.",
                "ijkguo/mx-rcnn issue 104, 2018, had both at once",
                answers=(_background_last,),
            ),
            Mistake(
                "padding has a best anchor",
                "a padded box overlaps every anchor by 0, and 0 is also its maximum: `iou == iou.amax(...)` holds "
                "for all, and every anchor becomes positive; `argmax` names the first one. Ask for more than 0.",
                "padding takes part in the loss: jwyang/faster-rcnn.pytorch issue 553, 2019",
                answers=(_padding_rescues, _argmax_of_padding),
            ),
            Mistake(
                "no rescue",
                "these are the labels without the rescue: a true box whose best anchor stays below `positive_iou` "
                "has no positive anchor at all.",
                "as in the second stage of torchvision's Faster R-CNN, 2019, where it is right",
                answers=(_no_rescue,),
            ),
            Mistake(
                "one of equals",
                "this is what comes out when each box rescues one best anchor, as `argmax` finds it. If several are "
                "equally good, all are positive.",
                "py-faster-rcnn, 2015, looks for all of them: `np.where(overlaps == gt_max_overlaps)`",
                answers=(_one_of_equals,),
            ),
            Mistake(
                "the best box of each anchor",
                "this is what a comparison with the maximum down a column gives. That is the best box of each "
                "*anchor*, which every anchor has. A row holds the overlaps of one box: its best anchor is the "
                "maximum over `dim=1`.",
                answers=(_best_of_each_anchor,),
            ),
            Mistake(
                "on the threshold",
                "an anchor that overlaps by exactly `positive_iou` is positive, and one that overlaps by exactly "
                "`negative_iou` is left out: `>=` for the first, `<` for the second.",
                answers=(_more_than, _up_to, _both_strict),
            ),
            Mistake(
                "thresholds of your own",
                "these are the labels for the thresholds 0.6 and 0.3, whatever the function is called with.",
                answers=(_own_thresholds,),
            ),
        ),
    ),
    Exercise(
        key="13.check_encode",
        task="A test: it calls `encode(boxes, anchors)` with boxes and anchors (N, 4) of its own, and raises an "
        "AssertionError unless `ops.decode_boxes(deltas, anchors, torch.ones(4))` makes the boxes again.",
        reference=check_encode,
        cases=_programs,
        hints=(
            "There and back: `ops.decode_boxes` of the deltas and the anchors must be the boxes.",
            "Which boxes and anchors show the difference? Not equal ones, not squares, not shifted alike in x and y.",
            "`torch.testing.assert_close(ops.decode_boxes(encode(boxes, anchors), anchors, torch.ones(4)), boxes)`",
        ),
        mistakes=(
            Mistake(
                "a box on its anchor",
                "this is how a test ends whose boxes are their anchors. All deltas are then 0, with the + 1 and "
                "without, in any order, so nearly every wrong program passes.",
                "the formulas of fizyr/keras-retinanet issue 171, 2017, agree there",
                answers=(_equal_boxes,),
            ),
            Mistake(
                "squares on the diagonal",
                "this is how a test ends with squares that are shifted as far in x as in y. Then x and y can be "
                "swapped without a difference.",
                "y first: pytorch/vision issue 1856, 2020; chenyuntc/simple-faster-rcnn-pytorch issue 39, 2018",
                answers=(_diagonal_squares,),
            ),
            Mistake(
                "half of the deltas",
                "this is how a test ends with a box that is as large as its anchor, or one that has the same middle. "
                "Then two of the four deltas are 0, and what is wrong with them does not show.",
                answers=(_same_size, _same_size_and_ratio, _same_middle),
            ),
            Mistake(
                "always fails",
                "this test fails on every program, also on the right ones; the error below says why. (`encode` takes "
                "the boxes first and the anchors second.)",
                answers=(_exchanged,),
            ),
            Mistake(
                "a pixel is near enough",
                "this is how a test ends that allows a pixel. With the + 1 an edge is off by less than that, unless "
                "it has to move by more than the size of its anchor, so the wrong program passes.",
                answers=(_loose,),
            ),
            Mistake(
                "never fails",
                "this test lets every program pass. A test that *returns* False has passed, and so has one that "
                "looks at shapes alone; compare the boxes, and write `assert`.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns_the_comparison,),
            ),
        ),
    ),
    Exercise(
        key="13.left_out",
        task="Which anchors have more than half of themselves in don't-care areas (D, 4), D may be 0: (N,) bool.",
        reference=left_out,
        cases=_area_cases,
        agree=_same,
        hints=(
            "Of the anchor, you want the part that lies inside. What do you divide by?",
            "Not by the union: a small anchor in the middle of a large area has a tiny IoU with it.",
            "Shared square pixels, summed over the areas, against half of the anchor's own.",
        ),
        mistakes=(
            Mistake(
                "IoU",
                "this is what the IoU gives. A small anchor in the middle of a large area overlaps little of the "
                "*union*, and stays a negative: the network learns that there is nothing in an area that nobody has "
                "labelled.",
                "tensorpack/tensorpack pull request 984, 2018",
                answers=(_by_iou,),
            ),
            Mistake(
                "share of the area",
                "this comes of dividing by the size of the area. Then only anchors that cover half of a large area "
                "are left out, and the small ones inside it stay.",
                "facebookresearch/detectron2 pull request 1910, 2020",
                answers=(_by_share_of_area,),
            ),
            Mistake(
                "area by area",
                "this is what a look at each area alone gives. An anchor may lie half in one area and half in its "
                "neighbour, so what it shares with all of them is added up.",
                answers=(_area_by_area, _largest_share),
            ),
            Mistake(
                "not clamped",
                "this is what comes out when sides that are negative are multiplied. Where a box is to the left of "
                "an area and above it, both are, and their product looks like something shared: `clamp(min=0)` "
                "first.",
                answers=(_not_clamped,),
            ),
            Mistake(
                "inside or not",
                "this answers whether the anchor, or its middle, is in the area, or whether they touch at all. "
                "What counts is the share: more than half.",
                answers=(_wholly_inside, _middle_inside, _any_overlap),
            ),
        ),
    ),
)
