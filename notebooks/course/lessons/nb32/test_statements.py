"""Statements in the prose of notebook 32 that no output shows, run again."""

import warnings

import pytest
import torch
from told import says
from torch import nn

from course.kit.files import CHECKPOINTS
from course.lessons.nb32.onnx_trial import silence, try_export
from course.lessons.nb32.puzzles.first_difference import Search, first_difference
from frcnn_lite import engine

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")


def test_a_wrapper_without_gpus_is_written_with_its_names(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with silence():
        torch.onnx.export(nn.DataParallel(nn.Linear(2, 2)).eval(), (torch.rand(1, 2),), str(tmp_path / "net.onnx"))
    names = [entry.name for entry in onnx.load(tmp_path / "net.onnx").graph.initializer]
    assert names and all(name.startswith("module.") for name in names)
    assert says("32", "and writes `module.` before every name")


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
