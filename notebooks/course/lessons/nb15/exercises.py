"""Exercises of notebook 15: RoI pooling by hand, a test that finds half a cell, the gradient of a maximum."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d
from torchvision import ops as vision

from course.kit.learn.exercise import Case, Ended, Exercise, Mistake, Program, Trial
from frcnn_lite import ops

Bin = tuple[int, int, int, int]
Align = Callable[[Tensor, Tensor, int, float], Tensor]
HALF_A_PIXEL = "half a pixel instead of half a cell"


def round_half_away(x: float) -> int:
    """The nearest whole number, halves away from zero."""
    whole = int(x)  # cuts the fraction off
    return whole + int(abs(x - whole) >= 0.5) * (1 if x > 0 else -1)


def edges(first: int, last: int, count: int, limit: int) -> list[tuple[int, int]]:
    """Where each of `count` bins over the cells first to last starts and ends, cut to a map of `limit` cells."""
    size = max(last - first + 1, 1)
    ends = [(first + i * size // count, first - (-(i + 1) * size // count)) for i in range(count)]
    return [(min(max(start, 0), limit), min(max(end, 0), limit)) for start, end in ends]


def pool_by_hand(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    corners = ops.round_half_away(torch.tensor(box) / 16)  # noqa: FL002 exercises are on the CPU
    x1, y1, x2, y2 = corners.int().tolist()
    out = torch.zeros(count, count)  # noqa: FL002 exercises are on the CPU
    for i, (top, bottom) in enumerate(edges(y1, y2, count, plane.shape[0])):
        for j, (left, right) in enumerate(edges(x1, x2, count, plane.shape[1])):
            if top < bottom and left < right:
                out[i, j] = plane[top:bottom, left:right].max()
    return out


def _pool(plane: Tensor, corners: Sequence[int], count: int, limits: Sequence[int] = ()) -> Tensor:
    """The rule from its second step on, for corners in cells. limits: the (H, W) that bins are cut to."""
    x1, y1, x2, y2 = corners
    height, width = limits or plane.shape
    out = torch.zeros(count, count)  # noqa: FL002 exercises are on the CPU
    for i, (top, bottom) in enumerate(edges(y1, y2, count, height)):
        for j, (left, right) in enumerate(edges(x1, x2, count, width)):
            if top < bottom and left < right:
                out[i, j] = plane[top:bottom, left:right].max()
    return out


def _halves_to_even(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return _pool(plane, [round(corner / 16) for corner in box], count)


def _last_cell_left_out(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    return _pool(plane, (x1, y1, x2 - 1, y2 - 1), count)


def _floor_of_a_half_more(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return _pool(plane, [math.floor(corner / 16 + 0.5) for corner in box], count)


def _cut_after_a_half(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return _pool(plane, [int(corner / 16 + 0.5) for corner in box], count)


def _rounded_down(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return _pool(plane, [math.floor(corner / 16) for corner in box], count)


def _covered_cells(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    x1, y1, x2, y2 = box
    low, high = (math.floor(x1 / 16), math.floor(y1 / 16)), (math.ceil(x2 / 16) - 1, math.ceil(y2 / 16) - 1)
    return _pool(plane, (*low, *high), count)


def _y_first(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    x1, y1, x2, y2 = box
    return pool_by_hand(plane, (y1, x1, y2, x2), count)


def _turned_over(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    return pool_by_hand(plane, box, count).T


def _limits_exchanged(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    """The rows are cut to the width of the map, and the columns to its height."""
    return _pool(plane, [round_half_away(corner / 16) for corner in box], count, plane.shape[::-1])


def _crop_first(plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    height, width = plane.shape
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    (x1, x2), (y1, y2) = (
        [min(max(k, 0), most - 1) for k in (a, b)] for a, b, most in ((x1, x2, width), (y1, y2, height))
    )
    return adaptive_max_pool2d(plane[None, y1 : y2 + 1, x1 : x2 + 1], count)[0]


def _empty_bins(largest: Callable[[Tensor], Tensor], plane: Tensor, box: Sequence[float], count: int) -> Tensor:
    x1, y1, x2, y2 = (round_half_away(corner / 16) for corner in box)
    rows, columns = edges(y1, y2, count, plane.shape[0]), edges(x1, x2, count, plane.shape[1])
    return torch.stack([torch.stack([largest(plane[t:b, l:r]) for l, r in columns]) for t, b in rows])  # noqa: E741


def _minus_infinity(crop: Tensor) -> Tensor:
    return crop.max() if crop.numel() else torch.tensor(-math.inf)  # noqa: FL002 exercises are on the CPU


def _pool_cases(random: Random) -> Sequence[Case]:
    counting = torch.arange(36.0).view(6, 6)  # noqa: FL002 exercises are on the CPU
    boxes = [(24, 24, 40, 40), (0, 8, 70, 90), (56, 40, 120, 96), (-24, 8, 20, 40)]
    cases = [Case((counting, box, count)) for box in boxes for count in (1, 2)]
    while len(cases) < 24:
        height, width, count = random.randint(4, 9), random.randint(4, 9), random.choice((1, 2, 4))
        plane = torch.tensor([[float(random.randint(-99, 99)) for _ in range(width)] for _ in range(height)])
        x, y = random.randint(-30, 12 * width), random.randint(-30, 12 * height)
        box = (x, y, x + random.randint(0, 16 * width), y + random.randint(0, 16 * height))
        cases.append(Case((plane, box, count)))
    return cases


def _moved(across: float, down: float, features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """RoIAlign that reads some cells to the right of the box and below it."""
    shift = torch.tensor([0.0, across, down, across, down]) / scale  # noqa: FL002 exercises are on the CPU
    return vision.roi_align(features, rois + shift, size, scale, 2, True)


def _turned(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    return vision.roi_align(features, rois[:, [0, 2, 1, 4, 3]], size, scale, 2, True)


def _rounded_differently(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """Right, and one or two digits apart from the others at the end, as processors may be from each other."""
    return ops.roi_align(features, rois, size, scale, 2, True) * (1 + 3e-7)


def _half_a_pixel(features: Tensor, rois: Tensor, size: int, scale: float) -> Tensor:
    """As an export of 2020 had it (pytorch/vision pull request 2613): half a pixel, not half a cell, is taken off."""
    return vision.roi_align(features, rois - torch.tensor([0.0, 0.5, 0.5, 0.5, 0.5]), size, scale)  # noqa: FL002 on the CPU


def _programs(random: Random) -> Sequence[Case]:
    """Three right programs and eight wrong ones."""
    programs: dict[str, Align] = {
        "torchvision, aligned": lambda f, r, size, scale: vision.roi_align(f, r, size, scale, 2, True),
        "torchvision, aligned, more points": lambda f, r, size, scale: vision.roi_align(f, r, size, scale, 5, True),
        "this project's, aligned, rounded differently": _rounded_differently,
        "torchvision's default": vision.roi_align,
        HALF_A_PIXEL: _half_a_pixel,
        "half a cell to the right": partial(_moved, 0.5, 0.0),
        "half a cell down": partial(_moved, 0.0, 0.5),
        "half a cell the other way": partial(_moved, -0.5, -0.5),
        "x and y exchanged": _turned,
    }
    for _ in range(2):
        across = random.choice((-1, 1)) * random.uniform(0.3, 0.8)
        programs[f"{across:.2f} cells to the right"] = partial(_moved, across, 0.0)
    return [Trial((Program(name, compute),)) for name, compute in programs.items()]


def check_align(program: Align) -> None:
    place = 16 * torch.arange(8.0) + 8  # noqa: FL002 exercises are on the CPU
    rois = torch.tensor([[0.0, 20, 40, 84, 88]])  # noqa: FL002 its middle is (52, 64)
    for features, middle in ((place.expand(1, 1, 8, 8), 52), (place.view(8, 1).expand(1, 1, 8, 8), 64)):
        assert abs(float(program(features, rois, 1, 1 / 16)) - middle) < 1


def _places() -> tuple[Tensor, Tensor]:
    """Maps whose cells hold the pixel of their own middle, from left to right and from top to bottom."""
    place = 16 * torch.arange(8.0) + 8  # noqa: FL002 exercises are on the CPU
    return place.expand(1, 1, 8, 8), place.view(8, 1).expand(1, 1, 8, 8)


def _rois(*box: float) -> Tensor:
    return torch.tensor([[0.0, *box]])  # noqa: FL002 exercises are on the CPU


def _one_value(tolerance: float, program: Align) -> None:
    assert abs(float(program(torch.ones_like(_places()[0]), _rois(20, 40, 84, 88), 1, 1 / 16)) - 1) <= tolerance


def _only_across(program: Align) -> None:
    assert abs(float(program(_places()[0], _rois(20, 40, 84, 88), 1, 1 / 16)) - 52) < 1


def _only_down(program: Align) -> None:
    assert abs(float(program(_places()[1], _rois(20, 40, 84, 88), 1, 1 / 16)) - 64) < 1


def _on_the_diagonal(program: Align) -> None:
    for features in _places():
        assert abs(float(program(features, _rois(32, 32, 48, 48), 1, 1 / 16)) - 40) < 1


def _sum_of_both(program: Align) -> None:
    across, down = (float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) for features in _places())
    assert abs(across + down - 116) < 1


def _stride_one(program: Align) -> None:
    place = torch.arange(12.0) + 0.5  # noqa: FL002 exercises are on the CPU
    for features, middle in ((place.expand(1, 1, 12, 12), 5), (place.view(12, 1).expand(1, 1, 12, 12), 6)):
        assert abs(float(program(features, _rois(3, 4, 7, 8), 1, 1.0)) - middle) < 0.1


def _random_map(program: Align) -> None:
    features = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    expected = vision.roi_align(features, _rois(20, 40, 84, 88), 2, 1 / 16, 2, True)
    torch.testing.assert_close(program(features, _rois(20, 40, 84, 88), 2, 1 / 16), expected)


def _to_the_last_bit(program: Align) -> None:
    for features, middle in zip(_places(), (52, 64), strict=True):
        assert float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) == middle


def _index_across(program: Align) -> None:
    features = torch.arange(8.0).expand(1, 1, 8, 8)  # noqa: FL002 exercises are on the CPU
    assert abs(float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) - 52 / 16) < 0.1


def _against_the_default(program: Align) -> None:
    for features in _places():
        expected = vision.roi_align(features, _rois(20, 40, 84, 88), 2, 1 / 16)
        torch.testing.assert_close(program(features, _rois(20, 40, 84, 88), 2, 1 / 16), expected)


def _within(pixels: float, program: Align) -> None:
    for features, middle in zip(_places(), (52, 64), strict=True):
        assert abs(float(program(features, _rois(20, 40, 84, 88), 1, 1 / 16)) - middle) < pixels


def _passed(cases: Sequence[Case], given: Sequence[Any]) -> dict[str, bool]:
    """Whether each program, by its name, passes the reader's test."""
    ends = zip(cases, given, strict=True)
    return {case.args[0].words: isinstance(end, Ended) and end.passed for case, end in ends}


def _too_tolerant(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """All right programs pass, several that read beside the box pass, and x and y exchanged do not."""
    passed = _passed(cases, given)
    right = [name for name in passed if "aligned" in name]
    beside = [name for name in passed if name not in right and passed[name]]
    return all(passed[name] for name in right) and HALF_A_PIXEL in beside[:-1] and not passed["x and y exchanged"]


def _wants_more_than_the_place(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    """All wrong programs fail, and of the right ones some fail and some pass."""
    passed = _passed(cases, given)
    right = {passed.pop(name) for name in list(passed) if "aligned" in name}
    return right == {True, False} and not any(passed.values())


def _returns_the_comparison(program: Align) -> bool:
    return abs(float(program(_places()[0], _rois(20, 40, 84, 88), 1, 1 / 16)) - 52) < 1


def roi_pool_backward(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """Gradient of plane (H, W), from that of each bin's maximum; a bin is (top, bottom, left, right), ends excluded."""
    out = torch.zeros_like(plane)
    for (top, bottom, left, right), share in zip(bins, grad, strict=True):
        crop = plane[top:bottom, left:right]
        if crop.numel():
            row, column = divmod(int(crop.argmax()), right - left)  # of equals, argmax names the first
            out[top + row, left + column] += share
    return out


def _backward_cases(random: Random) -> Sequence[Case]:
    ones = torch.ones(3, 3)
    cases = [Case((ones, [(0, 3, 0, 3)], torch.ones(1))), Case((ones, [(0, 2, 0, 2), (0, 0, 1, 3)], torch.ones(2)))]
    for _ in range(8):
        plane = torch.tensor([[float(random.randint(-3, 3)) for _ in range(5)] for _ in range(4)])
        bins = []
        for _ in range(6):
            top, left = random.randint(0, 3), random.randint(0, 4)
            bins.append((top, random.randint(top, 4), left, random.randint(left, 5)))
        cases.append(Case((plane, bins, torch.tensor([float(random.randint(1, 9)) for _ in bins]))))
    return cases


def _shared_out(shares: Callable[[Tensor, Bin], Tensor], plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """An answer for which `shares(plane, bin)` (H, W) tells how much of the gradient of a bin each cell gets."""
    out = torch.zeros_like(plane)
    for bin_, of_bin in zip(bins, grad, strict=True):
        top, bottom, left, right = bin_
        if top < bottom and left < right:
            out += shares(plane, bin_) * of_bin
    return out


def _crop(plane: Tensor, bin_: Bin) -> Tensor:
    top, bottom, left, right = bin_
    return plane[top:bottom, left:right]


def _winners(plane: Tensor, bin_: Bin) -> Tensor:
    """The cells of the bin (H, W) that hold its maximum, as numbers."""
    winners = torch.zeros_like(plane)
    _crop(winners, bin_)[:] = _crop(plane, bin_) == _crop(plane, bin_).max()
    return winners


def _at(plane: Tensor, row: int, column: int) -> Tensor:
    """One cell (H, W). Raises IndexError beyond the map, as a reader's `out[row, column]` does."""
    cell = torch.zeros_like(plane)
    cell[row, column] = 1
    return cell


def _split_ties(plane: Tensor, bin_: Bin) -> Tensor:
    return _winners(plane, bin_) / _winners(plane, bin_).sum()


def _last_of_the_ties(plane: Tensor, bin_: Bin) -> Tensor:
    row, column = _winners(plane, bin_).nonzero()[-1].tolist()
    return _at(plane, row, column)


def _width_of_the_map(plane: Tensor, bin_: Bin) -> Tensor:
    row, column = divmod(int(_crop(plane, bin_).argmax()), plane.shape[1])
    return _at(plane, bin_[0] + row, bin_[2] + column)


def _place_in_the_crop(plane: Tensor, bin_: Bin) -> Tensor:
    crop = _crop(plane, bin_)
    return _at(plane, *divmod(int(crop.argmax()), crop.shape[1]))


def _anywhere_on_the_map(plane: Tensor, bin_: Bin) -> Tensor:
    return plane == _crop(plane, bin_).max()


def _no_look_at_empty_bins(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    for bin_ in bins:
        _crop(plane, bin_).argmax()  # raises where there is no cell
    return roi_pool_backward(plane, bins, grad)


def _largest_above_zero(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    kept = [k for k, bin_ in enumerate(bins) if (_crop(plane, bin_) > 0).any()]
    return roi_pool_backward(plane, [bins[k] for k in kept], grad[kept])


def _written_over(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    out = torch.zeros_like(plane)
    for k, bin_ in enumerate(bins):
        of_bin = roi_pool_backward(plane, [bin_], grad[k : k + 1])
        out = torch.where(of_bin > 0, of_bin, out)  # the gradients of the cases are above zero
    return out


def _close(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and given.shape == expected.shape and torch.allclose(given, expected)


EXERCISES = (
    Exercise(
        key="15.pool_by_hand",
        task="RoI pooling of one map (H, W) at stride 16: the largest feature of each of count x count bins of a box.",
        reference=pool_by_hand,
        cases=_pool_cases,
        agree=_close,
        hints=(
            "Round the four corners, call `edges` for the rows and for the columns, and go through all pairs of bins.",
            "Python's `round` takes halves to the even number. `math.floor(x + 0.5)` does it for corners above zero; "
            "and below zero, where does a half go that is rounded *away* from zero? `ops.round_half_away` knows.",
            "An empty bin keeps its zero. The others: `out[i, j] = plane[top:bottom, left:right].max()`.",
        ),
        mistakes=(
            Mistake(
                "bankers' rounding",
                "this is what comes out when halves go to the even number, as with round and torch.round: 1.5 and "
                "2.5 both become 2.",
                "pytorch/vision issue 923, 2019: a slow RoI pooling with torch.round that differs at scale 0.5",
                answers=(_halves_to_even,),
            ),
            Mistake(
                "the last cell left out",
                "here the region ends before its last cell. A region from cell 0 to cell 7 has eight cells.",
                "facebookresearch/maskrcnn-benchmark issue 328, 2019: (0, 0, 7, 7) expected to be 7 x 7",
                answers=(_last_cell_left_out,),
            ),
            Mistake(
                "floor(x + 0.5)",
                "this is what floor(x + 0.5) or int(x + 0.5) gives. Below zero both go upwards: -1.5 becomes -1, and "
                "away from zero is -2.",
                answers=(_floor_of_a_half_more, _cut_after_a_half),
            ),
            Mistake(
                "rounded down",
                "here the corners are rounded down. Step 1 of the rule takes the nearest whole number.",
                answers=(_rounded_down,),
            ),
            Mistake(
                "the cells that are covered",
                "these are the maxima of the cells that the box covers. That would be the better region, and it is "
                "not what the rule says: it rounds both corners, and both corner cells belong to the region.",
                answers=(_covered_cells,),
            ),
            Mistake(
                "x and y exchanged",
                "x and y are exchanged somewhere: in the box, in the output, or in the sizes of the map. x counts "
                "columns and y counts rows, and a map is (H, W), rows first.",
                "boxes with y first: pytorch/vision issue 1856, 2020",
                answers=(_y_first, _turned_over, _limits_exchanged),
            ),
            Mistake(
                "cropped first",
                "this is what comes out when the region is cut to the map and then divided. The rule divides first "
                "and cuts the bins afterwards, so for a box that crosses the border the bins are different ones, and "
                "some are empty.",
                answers=(_crop_first,),
            ),
            Mistake(
                "the maximum of nothing",
                "this is what an empty bin gives that is asked for its maximum. It has none; by step 5 of the rule "
                "its value is 0.",
                answers=(
                    partial(_empty_bins, torch.max),
                    partial(_empty_bins, torch.amax),
                    partial(_empty_bins, _minus_infinity),
                ),
            ),
        ),
    ),
    Exercise(
        key="15.check_align",
        task="A test: it calls `program(features, rois, output_size, spatial_scale)` and raises an AssertionError if "
        "the program does not read at the box. It passes on right programs and fails on wrong ones.",
        reference=check_align,
        cases=_programs,
        hints=(
            "A map whose values say where they stand turns a mean into a place. You have met one above.",
            "A shift can be across or down, so use two maps. How far may a right program be off, and a wrong one?",
            "`place = 16 * torch.arange(8.0) + 8`, as rows and as columns; the one bin of a box must return the box's "
            "middle, within a pixel.",
        ),
        mistakes=(
            Mistake(
                "never fails",
                "this test lets every program pass. Either it never raises anything (a test that *returns* False has "
                "passed; write `assert`), or its map is the same everywhere, so the mean is the same wherever a "
                "program reads.",
                "pytest warns about tests that return something since version 7.2, 2022",
                answers=(_returns_the_comparison, partial(_one_value, 1e-5)),
            ),
            Mistake(
                "one value, to the last bit",
                "this is how a test ends whose map is the same everywhere, compared to the last bit. Every wrong "
                "program passes, since the mean is the same wherever it reads, and a right one fails, since it rounds "
                "differently.",
                answers=(partial(_one_value, 0),),
            ),
            Mistake(
                "stride 1",
                "this is how a test ends that runs at stride 1, where half a pixel is half a cell, or that allows "
                "nearly half a cell. A program that takes off half a pixel at every stride passes.",
                "half a pixel, as in the export of pytorch/vision pull request 2613, 2020",
                answers=(_stride_one,),
            ),
            Mistake(
                "too tolerant",
                "this is how a test ends that allows about half a cell, which is the very thing to find. Right "
                "programs are off by far less, so a pixel is enough.",
                answers=(partial(_within, 7.9), partial(_within, 8.5), partial(_within, 11)),
                recognise=_too_tolerant,
            ),
            Mistake(
                "one direction only",
                "this is how a test ends that finds what is read beside the box in one direction only. Use two maps: "
                "one that rises to the right, and one that rises downwards.",
                "boxes with y first go unseen in pytorch/vision issue 1856, 2020",
                answers=(_only_across, _only_down),
            ),
            Mistake(
                "x and y exchanged",
                "this test does not see when x and y are exchanged. A box whose middle is as far down as it is to "
                "the right cannot show it, and neither can the sum of the two.",
                "pytorch/vision issue 1856, 2020: boxes with y first",
                answers=(_on_the_diagonal, _sum_of_both),
            ),
            Mistake(
                "more than the place",
                "this test refuses programs that read at the right place. A right program may take more points in "
                "each bin. The mean of its points is the same only on a map that rises evenly, and even there only "
                "within rounding: compare on such a map, with a tolerance.",
                answers=(_random_map, _to_the_last_bit),
                recognise=_wants_more_than_the_place,
            ),
            Mistake(
                "compares with the default",
                "this is how a test ends that expects what torchvision's `roi_align` gives with its defaults, or the "
                "index that the pixel has when it is divided by the stride, which is the same. That is half a cell "
                "to the right and below, so the test passes on this program and fails on programs that are right.",
                "microsoft/onnxruntime issue 6921, 2021: an operator that copied the half cell",
                answers=(_against_the_default, _index_across),
            ),
        ),
    ),
    Exercise(
        key="15.roi_pool_backward",
        task="The gradient of a map (H, W) from the gradient of each bin's maximum; of equal cells the first one won.",
        reference=roi_pool_backward,
        cases=_backward_cases,
        agree=_close,
        hints=(
            "A maximum passes on one cell's feature. Whose gradient is it, then?",
            "`crop.argmax()` counts within the crop, row by row; bins overlap, so add to what is there; an empty bin "
            "has nothing to give.",
            "`row, column = divmod(int(crop.argmax()), right - left)`, then `out[top + row, left + column] += share`",
        ),
        mistakes=(
            Mistake(
                "ties split",
                "here equal cells share the gradient, as torch.amax does it. RoI pooling noted one, the first.",
                "pytorch/pytorch issue 56734, 2021; tensorflow/tensorflow issue 4886, 2016",
                answers=(partial(_shared_out, _split_ties),),
            ),
            Mistake(
                "every winner paid",
                "here each of the equal cells gets the whole gradient, so that more comes out than went in.",
                "Theano/Theano issue 5404, 2017, on max pooling in Theano and in early Caffe",
                answers=(partial(_shared_out, _winners), partial(_shared_out, _anywhere_on_the_map)),
            ),
            Mistake(
                "the last of equals",
                "here the last of equal cells gets the gradient. RoI pooling noted the first, row by row.",
                answers=(partial(_shared_out, _last_of_the_ties),),
            ),
            Mistake(
                "written over",
                "here a gradient is written over the one that is there. A cell can win in several bins, and then "
                "their gradients are added up: `+=`.",
                answers=(_written_over,),
            ),
            Mistake(
                "the width of the map",
                "this is what comes of dividing the argmax of the crop by the width of the map. It counts within the "
                "crop, whose rows are `right - left` cells long.",
                answers=(partial(_shared_out, _width_of_the_map),),
            ),
            Mistake(
                "a place in the crop",
                "here the row and the column in the crop are taken for those of the map. The crop begins at row "
                "`top` and column `left`.",
                answers=(partial(_shared_out, _place_in_the_crop),),
            ),
            Mistake(
                "the maximum of nothing",
                "an empty bin was asked where its maximum is. It has none, so its gradient goes nowhere.",
                answers=(_no_look_at_empty_bins,),
            ),
            Mistake(
                "larger than zero",
                "this is what a search for the largest feature gives that begins at 0. A bin without a feature above "
                "0 then has no winner, but its gradient belongs to a cell like that of any other bin.",
                answers=(_largest_above_zero,),
            ),
        ),
    ),
)
