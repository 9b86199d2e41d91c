"""The gradient of a map (H, W) from the gradient of each bin's maximum; of equal cells the first one won."""

from collections.abc import Callable, Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb15.cases import close

hints = (
    "A maximum passes on one cell's feature. Whose gradient is it, then?",
    "`crop.argmax()` counts within the crop, row by row; bins overlap, so add to what is there; an empty bin "
    "has nothing to give.",
    "`row, column = divmod(int(crop.argmax()), right - left)`, then `out[top + row, left + column] += share`",
)


Bin = tuple[int, int, int, int]


def roi_pool_backward(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """Gradient of plane (H, W), from that of each bin's maximum; a bin is (top, bottom, left, right), ends excluded."""
    out = torch.zeros_like(plane)
    for (top, bottom, left, right), share in zip(bins, grad, strict=True):
        crop = plane[top:bottom, left:right]
        if crop.numel():
            row, column = divmod(int(crop.argmax()), right - left)  # of equals, argmax names the first
            out[top + row, left + column] += share
    return out


def cases(random: Random) -> Sequence[Case]:
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


agree = close


@wrong
def ties_split(*given):
    """here equal cells share the gradient, as torch.amax does it. RoI pooling noted one, the first.

    Source: pytorch/pytorch issue 56734, 2021; tensorflow/tensorflow issue 4886, 2016
    """
    return _shared_out(_split_ties, *given)


@wrong
def every_winner_paid(*given):
    """here each of the equal cells gets the whole gradient, so that more comes out than went in.

    Source: Theano/Theano issue 5404, 2017, on max pooling in Theano and in early Caffe
    """
    return _shared_out(_winners, *given)


@also(every_winner_paid)
def _(*given):
    return _shared_out(_anywhere_on_the_map, *given)


@wrong
def the_last_of_equals(*given):
    """here the last of equal cells gets the gradient. RoI pooling noted the first, row by row."""
    return _shared_out(_last_of_the_ties, *given)


@wrong
def written_over(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """here a gradient is written over the one that is there. A cell can win in several bins, and then their gradients
    are added up: `+=`.
    """
    out = torch.zeros_like(plane)
    for k, bin_ in enumerate(bins):
        of_bin = roi_pool_backward(plane, [bin_], grad[k : k + 1])
        out = torch.where(of_bin > 0, of_bin, out)  # the gradients of the cases are above zero
    return out


@wrong
def the_width_of_the_map(*given):
    """this is what comes of dividing the argmax of the crop by the width of the map. It counts within the crop, whose
    rows are `right - left` cells long.
    """
    return _shared_out(_width_of_the_map, *given)


@wrong
def a_place_in_the_crop(*given):
    """here the row and the column in the crop are taken for those of the map. The crop begins at row `top` and column
    `left`.
    """
    return _shared_out(_place_in_the_crop, *given)


@wrong
def the_maximum_of_nothing(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """an empty bin was asked where its maximum is. It has none, so its gradient goes nowhere."""
    for bin_ in bins:
        _crop(plane, bin_).argmax()  # raises where there is no cell
    return roi_pool_backward(plane, bins, grad)


@wrong
def larger_than_zero(plane: Tensor, bins: Sequence[Bin], grad: Tensor) -> Tensor:
    """this is what a search for the largest feature gives that begins at 0. A bin without a feature above 0 then has no
    winner, but its gradient belongs to a cell like that of any other bin.
    """
    kept = [k for k, bin_ in enumerate(bins) if (_crop(plane, bin_) > 0).any()]
    return roi_pool_backward(plane, [bins[k] for k in kept], grad[kept])
