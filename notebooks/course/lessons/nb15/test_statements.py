"""Numbers and statements in the prose of notebook 15 that no output shows, computed and run again."""

import inspect
import re

import torch
from told import prose, says
from torchvision import ops as vision
from torchvision.models.detection import FasterRCNN

from course.kit.files import NOTEBOOKS
from course.lessons.nb15.pyramid_levels import pyramid_levels
from frcnn_lite import FasterRCNNConfig, ops
from frcnn_lite.detection.box_head import SAMPLING_RATIO


def test_over_many_boxes_both_read_half_a_cell_beside_and_pooling_takes_a_cell_more():
    draws = torch.Generator().manual_seed(0)
    start, size = (torch.rand(1000, 2, generator=draws) * 400 for _ in "ab")
    boxes = torch.cat([torch.zeros(1000, 1), start + 32, start + size + 48], dim=1)  # at least a cell wide
    middle, width = (boxes[:, 1] + boxes[:, 3]) / 2, boxes[:, 3] - boxes[:, 1]
    first, end = (16 * ops.roi_bins(boxes, (60, 60), 1, 1, 1 / 16)[2][:, 0]).unbind(dim=1)
    assert abs(((first + end) / 2 - middle).mean() - 8) < 0.5 and abs((end - first - width).mean() - 16) < 0.5
    place = (16 * torch.arange(60.0) + 8).expand(1, 1, 60, 60)
    for aligned, beside in ((False, 8), (True, 0)):
        read = vision.roi_align(place, boxes, 1, 1 / 16, 2, aligned).flatten()
        assert abs((read - middle).mean() - beside) < 0.5
    assert says("15", "by half a cell on average, and one cell too large each way")


def test_two_points_a_bin_and_half_a_cell_are_the_defaults_of_detectors():
    assert inspect.signature(vision.roi_align).parameters["aligned"].default is False
    assert inspect.signature(ops.roi_align).parameters["aligned"].default is False
    assert "sampling_ratio=2" in inspect.getsource(FasterRCNN.__init__) and SAMPLING_RATIO == 2
    assert FasterRCNNConfig().roi_op == "align"
    assert says("15", "torchvision's operator and its detectors have `False`, and so do ours")


def test_numbers_of_both_operators_are_those_of_the_page_that_measured_them():
    page = (NOTEBOOKS.parent / "docs" / "detector.md").read_text(encoding="utf-8")
    align, pool = (
        re.findall(rf"^\| {row} \|.* (0\.\d+) (0\.\d+)(?:,[^|]*)? \|$", page, re.MULTILINE)[0]
        for row in ("ours, one set of deltas for all classes", "ours, that and RoI pooling")
    )
    said = re.findall(
        r"AP50 (0\.\d+)\), but AP, .* was (0\.\d+) with RoIAlign and (0\.\d+) with RoI pooling", prose("15")
    )
    assert said == [(align[0], align[1], "0.733")] and "0.979 0.733" in page and pool


def test_the_last_of_seven_bins_over_57_rows_reads_one_row_more():
    _, rows, _ = ops.roi_bins(torch.tensor([[0.0, 0, 0, 0, 56]]), (70, 70), 7, 1, 1.0)
    assert rows[0, -1].tolist() == [48, 58]


def test_a_region_cut_first_has_no_empty_bin():
    _, argmax = ops.roi_pool_with_argmax(torch.rand(1, 1, 8, 8), torch.tensor([[0.0, 60, 0, 128, 64]]), 7, 1 / 16)
    assert (argmax[..., -1] == -1).all()  # the corner is cell 8 of a map with the cells 0 to 7
    _, argmax = ops.roi_pool_with_argmax(torch.rand(1, 1, 8, 8), torch.tensor([[0.0, 60, 0, 112, 64]]), 7, 1 / 16)
    assert (argmax >= 0).all()


def test_the_figure_of_levels_says_what_it_draws():
    figure = pyramid_levels(lambda side: 4 if side >= 224 else 3)
    assert "32 px: 4 cells of level 3" in figure.description and "448 px: 28 cells of level 4" in figure.description
    assert says("15", "one of 32 pixels has 8 cells")
