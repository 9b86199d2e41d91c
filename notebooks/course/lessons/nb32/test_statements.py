"""Statements in the prose of notebook 32 that no output shows, run again."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from told import says

from course.kit.files import CHECKPOINTS
from course.lessons.nb32.onnx_trial import silence, try_export
from course.lessons.nb32.puzzles.first_difference import Search, first_difference
from frcnn_lite import engine

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")


def test_opset_nine_moves_a_picture_by_half_of_the_factor_less_one():
    for factor in (2, 4, 8, 16):
        i = torch.arange(8.0 * factor)
        middles = (i + 0.5) / factor - 0.5
        assert torch.allclose((i / factor - middles) * factor, torch.full_like(i, (factor - 1) / 2))
    assert says("32", "The two differ by (*f* - 1) / 2 pixels of the output, everywhere")


def test_the_formula_is_exact_for_490_of_2080_pairs():
    exact = []
    for size in range(1, 65):
        cells = torch.eye(size).unsqueeze(1)  # one picture for each cell, which alone is 1: it shows who looks at it
        for output in range(1, size + 1):
            stride = size // output
            fixed = F.max_pool1d(cells, size - (output - 1) * stride, stride)
            exact.append(torch.equal(fixed, F.adaptive_max_pool1d(cells, output)))
    assert (sum(exact), len(exact)) == (490, 2080)
    assert says("32", "Of the 2,080 pairs of sizes up to 64 the formula is exact for 490.")


def test_sixty_names_take_six_calls():
    assert max(Search((60, k)).call(first_difference).calls for k in range(61)) == 6


def test_the_default_exporter_does_not_know_the_detector():
    with pytest.raises(torch.onnx.errors.OnnxExporterError):
        try_export(engine.load_weights(CHECKPOINTS / "digits.pt"), torch.zeros(2, 3, 128, 128))
    assert says("32", "so no exporter knows what to do with it")


@pytest.mark.long
def test_the_default_exporter_refuses_the_detector_of_torchvision(tmp_path):
    detection = pytest.importorskip("torchvision").models.detection
    net = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=3).eval()
    picture = torch.rand(3, 128, 128)
    with silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(torch.onnx.errors.OnnxExporterError) as refused:
            torch.onnx.export(net, ([picture],), str(tmp_path / "new.onnx"))
        torch.onnx.export(net, ([picture],), str(tmp_path / "old.onnx"), dynamo=False, opset_version=17)
    assert "Could not guard on data-dependent expression" in str(refused.value.__cause__)
    (given,) = onnx.load(tmp_path / "old.onnx").graph.input
    assert [size.dim_value for size in given.type.tensor_type.shape.dim] == [3, 128, 128]
    assert says("32", "With `dynamo=False` it exports, for one picture of the size of the example.")
