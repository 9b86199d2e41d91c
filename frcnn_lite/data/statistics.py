"""A detector that suits the boxes of a data set: the size of its pictures, and its anchors."""

from typing import NamedTuple

import torch
from torch import Tensor

from frcnn_lite.ops import box_iou

SMALL_BOX = 20.0  # pixels: the smallest twentieth of the boxes should be seen at about this size
TRAINED_SIDE = 224  # of the pictures that torchvision's backbones were trained on
SIDES = (96, 416)  # of the longer side of the canvas: what a detector for two CPU cores can still look at
MULTIPLE = 32  # of every side, so that no stage of a backbone has to round
MATCH_IOU, MATCHED = 0.5, 0.95  # anchors are enough when this share of the boxes has one that overlaps by this much
MOST_SIZES = 6
WIDE_OPEN = 1.5  # proportions that differ by more than this factor need anchors of several proportions


class AnchorFit(NamedTuple):
    """Anchors that suit boxes.

    Attributes:
        sizes: square roots of areas, in pixels.
        ratios: height / width.
        matched: the fraction of boxes that have a good anchor.
    """

    sizes: tuple[float, ...]
    ratios: tuple[float, ...]
    matched: float


class DataFit(NamedTuple):
    """A canvas and anchors that suit pictures.

    Attributes:
        canvas: (height, width) that all pictures are brought to.
        anchors: for the boxes on that canvas.
    """

    canvas: tuple[int, int]
    anchors: AnchorFit


def fit_detector(
    picture_sizes: Tensor,
    boxes: Tensor,
    owner: Tensor,
    *,
    canvas: tuple[int, int] | None = None,
    anchor_count: int | None = None,
    least_side: int = SIDES[0],
) -> DataFit:
    """The canvas and the anchors that suit pictures and their boxes.

    Args:
        picture_sizes: (P, 2), height and width.
        boxes: (n, 4) xyxy pixels.
        owner: (n,) the picture of each box.
        canvas: (height, width), where it is fixed already.
        anchor_count: how many sizes of anchors, where it is fixed already.
        least_side: of the longer side of the canvas, see `fit_canvas`.

    Raises:
        ValueError: there is no box.
    """
    canvas = fit_canvas(picture_sizes, boxes, owner, least_side) if canvas is None else canvas
    scale = (torch.tensor(canvas, dtype=torch.float64) / picture_sizes).amin(dim=1)
    return DataFit(canvas, fit_anchors(boxes * scale[owner].unsqueeze(1), anchor_count))


def fit_canvas(picture_sizes: Tensor, boxes: Tensor, owner: Tensor, least_side: int = SIDES[0]) -> tuple[int, int]:
    """A canvas for pictures: as small as the small boxes allow, as large as `SIDES` allows.

    It is wide and high enough for nine pictures in ten.

    Args:
        picture_sizes: (P, 2), height and width.
        boxes: (n, 4) xyxy pixels.
        owner: (n,) the picture of each box.
        least_side: pixels that the longer side has also where all objects are large.

    Returns:
        (height, width).
    """
    longer = picture_sizes.double().amax(dim=1)
    parts = picture_sizes / longer.unsqueeze(1)  # of the longer side: large pictures count no more than small ones
    shape = parts.quantile(0.9, dim=0)
    pixel = (shape / parts).amin(dim=1) / longer  # of each picture, on a canvas whose longer side is 1
    side = SMALL_BOX / (_root_area(boxes) * pixel[owner]).quantile(0.05).item() if len(boxes) else SIDES[1]
    sides = shape * min(max(side, least_side), SIDES[1])
    height, width = (max(MULTIPLE, round(s / MULTIPLE) * MULTIPLE) for s in sides.tolist())
    return height, width


def fit_anchors(boxes: Tensor, count: int | None = None) -> AnchorFit:
    """Anchors for boxes, by k-means of the logarithms of their sizes.

    k-means of box sizes instead of sizes by hand is the idea of J. Redmon and A. Farhadi, "YOLO9000", CVPR 2017; on
    logarithms a distance is a ratio, and so close to an IoU.

    Args:
        boxes: (n, 4), on the canvas.
        count: how many sizes; without it as few as match the boxes.

    Raises:
        ValueError: there are no boxes.
    """
    if len(boxes) == 0:
        raise ValueError("`boxes` must hold at least one box, got none: anchors are fitted to what is to be found")
    size = _root_area(boxes)
    ratio = ((boxes[:, 3] - boxes[:, 1]) / (boxes[:, 2] - boxes[:, 0])).double()
    low, middle, high = ratio.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)).tolist()
    ratios = (middle,) if high / low < WIDE_OPEN**2 else (low, middle, high)
    fit = AnchorFit((), ratios, 0.0)
    for k in range(2, MOST_SIZES + 1) if count is None else (count,):
        sizes = k_means(size.log(), k).exp().tolist()
        sizes += sizes[-1:] * (k - len(sizes) if count else 0)  # equal boxes have fewer centres than levels ask for
        fit = AnchorFit(tuple(round(s, 1) for s in sizes), tuple(round(r, 2) for r in ratios), 0.0)
        fit = fit._replace(matched=_matched(size, ratio, fit))
        if fit.matched >= MATCHED:
            break
    return fit


def k_means(values: Tensor, k: int, rounds: int = 50) -> Tensor:
    """At most k centres of numbers (n,), rising: Lloyd's algorithm, begun at quantiles and so the same every time."""
    centres = values.quantile((torch.arange(k, dtype=values.dtype) + 0.5) / k).unique()
    for _ in range(rounds):
        nearest = (values[:, None] - centres).abs().argmin(dim=1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, values)
        counts = torch.zeros_like(centres).index_add_(0, nearest, torch.ones_like(values))
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return centres


def _matched(size: Tensor, ratio: Tensor, anchors: AnchorFit) -> float:
    """The share of boxes that some anchor overlaps by `MATCH_IOU`, centre upon centre."""
    a, r = (torch.tensor(t, dtype=torch.float64) for t in (anchors.sizes, anchors.ratios))
    iou = box_iou(_centred(size, ratio), _centred(*torch.cartesian_prod(a, r).unbind(dim=1)))
    return (iou.amax(dim=1) >= MATCH_IOU).double().mean().item()


def _centred(size: Tensor, ratio: Tensor) -> Tensor:
    """Boxes (n, 4) around the origin, from the roots (n,) of their areas and from height / width (n,)."""
    half = torch.stack([size / ratio.sqrt(), size * ratio.sqrt()], dim=1) / 2
    return torch.cat([-half, half], dim=1)


def _root_area(boxes: Tensor) -> Tensor:
    return ((boxes[:, 2] - boxes[:, 0]).double() * (boxes[:, 3] - boxes[:, 1]).double()).sqrt()
