"""The figures of RoI pooling show what the operators compute."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course.kit.figures.palette import blend
from course.lessons.nb15.reads_where import reads_where
from course.lessons.nb15.roi_bins import BIN, LARGEST, roi_figure
from frcnn_lite import ops

COUNTING = torch.arange(36).view(6, 6)


def test_hook_box_in_words():
    figure = roi_figure(COUNTING, (24, 24, 40, 40))
    assert "rows 2 and 3, columns 2 and 3" in figure.description
    assert "RoI pooling gives 14, 15, 20, 21." in figure.description
    assert "across: 1.50 becomes 2, 2.50 becomes 3" in figure.description
    ElementTree.fromstring(figure.markup)


@pytest.mark.parametrize("box", [(24, 24, 40, 40), (16, 16, 32, 32), (20, 24, 88, 84)])
def test_box_is_drawn_over_its_pixels(box):
    """A cell stands for 16 x 16 pixels, in the drawing as in the notebook."""
    figure = roi_figure(COUNTING, box, bins=1)
    cells = [line for line in ElementTree.fromstring(figure.markup).iter() if line.tag.endswith("rect")]
    left, top = (min(float(c.get(edge)) for c in cells if c.get("width") == "44") for edge in ("x", "y"))
    (dashed,) = (e for e in ElementTree.fromstring(figure.markup).iter() if e.get("stroke-dasharray"))
    points = [tuple(map(float, point.split(","))) for point in dashed.get("points").split()]
    assert points[0] == (left + box[0] / 16 * 44, top + box[1] / 16 * 44)
    assert points[2] == (left + box[2] / 16 * 44, top + box[3] / 16 * 44)


@pytest.mark.parametrize("box", [(32, 32, 48, 48), (20, 24, 88, 84), (64, 40, 100, 60)])
def test_where_is_read_what_the_operators_read(box):
    """On a map in which each cell holds the pixel of its own middle, a mean is a place."""
    place = (16 * torch.arange(8.0) + 8).expand(1, 1, 8, 8)
    middle = (box[0] + box[2]) / 2
    rois = torch.tensor([[0.0, *box]])
    figure = reads_where(box)
    for aligned in (False, True):
        off = float(ops.roi_align(place, rois, 1, 1 / 16, 4, aligned)) - middle
        words = f"{off:.3g} px right" if off > 0.05 else "that of the box"
        assert f"RoIAlign, aligned={aligned}: reads 4 x 4 points, its middle {words}" in figure.description


def test_places_have_a_panel_each_and_sample_points_lie_in_an_aligned_box():
    box = (20, 24, 88, 84)
    figure = reads_where(box, aligned=(True,))
    assert "aligned=False" not in figure.description and "RoIAlign, aligned=True" in figure.description
    drawn = ElementTree.fromstring(figure.markup)
    (dashed,) = (e for e in drawn.iter() if e.get("stroke-dasharray"))
    left, top, wide, high = (float(dashed.get(name)) for name in ("x", "y", "width", "height"))
    dots = [(float(e.get("cx")), float(e.get("cy"))) for e in drawn.iter() if e.tag.endswith("circle")]
    assert len(dots) == 16 + 2  # and the ring with its rim
    assert all(left < x < left + wide and top < y < top + high for x, y in dots)


@pytest.mark.parametrize("box", [(40, 20, 40, 60), (-1, 0, 16, 16), (0, 0, 129, 16)])
def test_a_place_outside_the_map_is_refused(box):
    with pytest.raises(ValueError, match="must lie inside the map of 128 pixels"):
        reads_where(box)


@pytest.mark.parametrize("box", [(0, 0, 95, 95), (50, 60, 20, 10), (70, 70, 150, 150), (-60, -60, -40, -40)])
@pytest.mark.parametrize("bins", [1, 2, 4])
def test_the_argmax_is_filled_and_every_bin_that_has_cells_has_brackets(box, bins):
    rois = torch.tensor([[0.0, *box]])
    _, argmax = ops.roi_pool_with_argmax(COUNTING.float()[None, None], rois, bins, 1 / 16)
    _, rows, columns = ops.roi_bins(rois, COUNTING.shape, bins, bins, 1 / 16)
    drawn = [*ElementTree.fromstring(roi_figure(COUNTING, box, bins).markup).iter()]
    assert sum(e.get("fill") == blend(LARGEST, 0.6) for e in drawn) == len(set(argmax.flatten().tolist()) - {-1})
    filled = sum(start < end for start, end in [*rows[0].tolist(), *columns[0].tolist()])
    assert sum(e.tag.endswith("polyline") and e.get("stroke") == BIN for e in drawn) == filled


def test_refusals():
    with pytest.raises(ValueError, match=r"at most 12 x 12 cells, 1 to 4 bins"):
        roi_figure(torch.zeros(13, 3), (0, 0, 1, 1))
