import pytest
import torch

from frcnn_lite.data.statistics import fit_anchors, fit_canvas, k_means


def boxes_of(widths, heights):
    widths, heights = torch.tensor(widths), torch.tensor(heights)
    return torch.stack([torch.zeros_like(widths), torch.zeros_like(widths), widths, heights], dim=1)


def test_the_centres_of_two_heaps_are_found():
    torch.manual_seed(0)
    values = torch.cat([torch.randn(300) * 0.1 + 2, torch.randn(100) * 0.1 + 5]).double()
    assert k_means(values, 2).tolist() == pytest.approx([2, 5], abs=0.05)
    assert torch.equal(k_means(values, 4), k_means(values.flip(0), 4))


def test_anchors_have_the_sizes_and_proportions_of_the_boxes():
    fit = fit_anchors(boxes_of([20.0] * 50 + [80.0] * 50, [20.0] * 50 + [80.0] * 50))
    assert fit.sizes == (20, 80) and fit.ratios == (1.0,) and fit.matched == 1


def test_proportions_far_apart_get_anchors_of_their_own():
    fit = fit_anchors(boxes_of([10.0, 40.0] * 40, [40.0, 10.0] * 40))
    assert len(fit.ratios) == 3 and fit.matched == 1


def test_anchors_match_boxes_of_many_sizes():
    torch.manual_seed(0)
    side = torch.exp(torch.empty(2000).uniform_(2.5, 5.5))
    ratio = torch.exp(torch.randn(2000) * 0.2)
    fit = fit_anchors(boxes_of((side / ratio).tolist(), (side * ratio).tolist()))
    assert fit.matched >= 0.95 and list(fit.sizes) == sorted(fit.sizes)


@pytest.mark.parametrize("boxes", [boxes_of([10.0], [20.0]), boxes_of([10.0] * 5, [20.0] * 5)])
def test_few_boxes_are_enough(boxes):
    fit = fit_anchors(boxes)
    assert fit.sizes == (14.1,) and fit.ratios == (2.0,) and fit.matched == 1


@pytest.mark.parametrize("sides", [[10.0, 20.0, 40.0, 80.0, 160.0], [10.0] * 5])
def test_a_pyramid_gets_a_size_for_every_level(sides):
    fit = fit_anchors(boxes_of(sides, sides), 5)
    assert fit.sizes == pytest.approx(sides, abs=0.1) and fit.matched == 1


def test_no_boxes_are_refused():
    with pytest.raises(ValueError, match="at least one box"):
        fit_anchors(torch.zeros(0, 4))


def test_the_canvas_keeps_small_boxes_visible_and_proportions():
    sizes = torch.tensor([[480, 640]] * 20)
    height, width = fit_canvas(sizes, boxes_of([40.0] * 20, [40.0] * 20), torch.arange(20))
    assert (height, width) == (256, 320)  # 40 pixels shrink to 20, sides to multiples of 32
    assert fit_canvas(sizes, boxes_of([4.0] * 20, [4.0] * 20), torch.arange(20)) == (320, 416)
    assert fit_canvas(sizes, boxes_of([400.0] * 20, [400.0] * 20), torch.arange(20)) == (64, 96)
    large = fit_canvas(sizes, boxes_of([400.0] * 20, [400.0] * 20), torch.arange(20), least_side=224)
    assert large == (160, 224)  # as for weights that were trained on such pictures
    assert fit_canvas(sizes, torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)) == (320, 416)


def test_a_canvas_for_both_ways_of_holding_the_camera_is_square():
    sizes = torch.tensor([[480, 640], [640, 480]] * 10)
    assert fit_canvas(sizes, boxes_of([64.0] * 20, [64.0] * 20), torch.arange(20)) == (192, 192)


def test_a_few_wide_pictures_of_many_pixels_do_not_shrink_the_upright_ones():
    sizes = torch.tensor([[504, 378]] * 17 + [[540, 960]] * 3)
    boxes = boxes_of([50.0] * 17 + [100.0] * 3, [50.0] * 17 + [100.0] * 3)
    height, width = fit_canvas(sizes, boxes, torch.arange(20))
    assert (height, width) == (192, 192)  # of the wide shape alone, 128 x 192, an upright picture would fill a half
