"""The detector in onnxruntime gives what it gives in torch, in batches of any size."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from frcnn_lite import engine, ops
from frcnn_lite.data import DigitScenes
from frcnn_lite.detection.suppress import suppress
from frcnn_lite.export.onnx import OPSET, export_onnx, translations
from frcnn_lite.export.onnx_detector import OnnxDetector

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

WEIGHTS = Path(__file__).resolve().parents[2] / "notebooks" / "checkpoints" / "digits.pt"
NAMES = DigitScenes.class_names


@pytest.fixture(scope="module")
def model():
    return engine.load_weights(WEIGHTS)


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "digits.onnx"
    export_onnx(model, path, class_names=NAMES)
    return path


@pytest.fixture(scope="module")
def pictures():
    scenes = DigitScenes("test", 50)
    return torch.stack([scenes[i].image for i in range(50)])


@pytest.fixture(scope="module")
def expected(model, pictures):
    return model(pictures / 255)


def assert_same(found, expected):
    for name, one, other in zip(expected._fields, found, expected, strict=True):
        assert one.shape == other.shape
        if name == "boxes":
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-3)
        elif name == "scores":
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 3, 5, 50])
def test_fifty_scenes_in_batches_other_than_the_traced_one(file, pictures, expected, size):
    detector = OnnxDetector(file)
    parts = [detector.run((pictures[i : i + size] / 255).numpy()) for i in range(0, 50, size)]
    assert_same([np.concatenate(field) for field in zip(*parts, strict=True)], expected)


@pytest.mark.exhaustive
def test_fixed_batch(model, pictures, expected, tmp_path):
    export_onnx(model, tmp_path / "three.onnx", batch=3)
    detector = OnnxDetector(tmp_path / "three.onnx")
    assert_same(detector.run((pictures[:3] / 255).numpy()), type(expected)(*(field[:3] for field in expected)))
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="Expected: 3"):
        detector.run((pictures[:2] / 255).numpy())


def test_the_file_says_what_it_is(file, pictures, expected):
    detector = OnnxDetector(file)
    assert detector.class_names == list(NAMES) and detector.image_size == (128, 128)
    meta = detector.session.get_modelmeta().custom_metadata_map
    assert "divided by 255" in meta["preprocessing"]
    assert [entry.version for entry in onnx.load(file).opset_import] == [OPSET]
    onnx.checker.check_model(onnx.load(file), full_check=True)
    first = detector(pictures[:2].permute(0, 2, 3, 1).numpy())[0]
    kept = expected.valid[0]
    assert first.names == [NAMES[label] for label in expected.labels[0][kept]]
    np.testing.assert_allclose(first.boxes, expected.boxes[0][kept], atol=1e-3)


def test_refusals(model, file, tmp_path):
    with pytest.raises(FileExistsError, match="exists already"):
        export_onnx(model, file)
    with pytest.raises(ValueError, match="`class_names` must name 10 classes, got 2"):
        export_onnx(model, tmp_path / "x.onnx", class_names=("a", "b"))
    with pytest.raises(ValueError, match="`batch` must be at least 1"):
        export_onnx(model, tmp_path / "x.onnx", batch=0)
    detector = OnnxDetector(file)
    with pytest.raises(ValueError, match=r"`pictures` must be \(B, 128, 128, 3\) uint8, got \(1, 64, 64, 3\)"):
        detector(np.zeros((1, 64, 64, 3), np.uint8))


class Pool(nn.Module):
    def forward(self, features, rois):
        return ops.roi_pool(features, rois, (5, 7), 1 / 4)


class Align(nn.Module):
    def __init__(self, ratio, aligned):
        super().__init__()
        self.ratio, self.aligned = ratio, aligned

    def forward(self, features, rois):
        return ops.roi_align(features, rois, (5, 7), 1 / 4, self.ratio, self.aligned)


class Thin(nn.Module):
    def forward(self, boxes, scores, classes):
        return suppress(boxes, scores, 0.5), suppress(boxes, scores, 0.5, classes)


class Sort(nn.Module):
    def forward(self, x, marks):
        order = marks.to(torch.uint8).argsort(dim=1, stable=True)
        return (*x.sort(dim=1, descending=True, stable=True), x.argsort(dim=1, stable=True), order)


def in_onnxruntime(module, example, *others):
    """Outputs of the exported module for `others`, whose first dimension is not the traced one."""
    dims = tuple({0: torch.export.Dim.DYNAMIC} for _ in example)
    program = torch.onnx.export(
        module.eval(), example, dynamic_shapes=dims, custom_translation_table=translations(), verbose=False
    )
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    names = [entry.name for entry in session.get_inputs()]
    return [session.run(None, dict(zip(names, map(torch.Tensor.numpy, other), strict=True))) for other in others]


def test_max_roi_pool_follows_our_rule_bit_for_bit():
    def inputs(seed, images, regions):
        draw = torch.Generator().manual_seed(seed)
        # Halves of a cell, corners outside, swapped corners and single cells: where rounding rules differ.
        corners = torch.randint(-12, 150, (regions, 4), generator=draw) / 2
        index = torch.randint(images, (regions, 1), generator=draw)
        features = torch.randn(images, 3, 13, 17, generator=draw)
        return features, torch.cat([index.float(), corners], dim=1)

    trials = [inputs(seed, 1 + seed % 4, 40 + seed) for seed in range(12)]
    for (found,), (features, rois) in zip(in_onnxruntime(Pool(), inputs(99, 2, 30), *trials), trials, strict=True):
        assert np.array_equal(found, Pool()(features, rois))


@pytest.mark.parametrize(("ratio", "aligned"), [(2, False), (2, True), (-1, False)])
def test_roi_align_follows_our_rule(ratio, aligned):
    def inputs(seed, images, regions):
        draw = torch.Generator().manual_seed(seed)
        corners = (torch.rand(regions, 2, 2, generator=draw) * 90 - 12).sort(dim=1).values.flatten(1)
        index = torch.randint(images, (regions, 1), generator=draw)
        return torch.randn(images, 3, 13, 17, generator=draw), torch.cat([index.float(), corners], dim=1)

    align = Align(ratio, aligned)
    trials = [inputs(seed, 1 + seed % 4, 40 + seed) for seed in range(6)]
    for (found,), (features, rois) in zip(in_onnxruntime(align, inputs(99, 2, 30), *trials), trials, strict=True):
        np.testing.assert_allclose(found, align(features, rois), rtol=1e-5, atol=1e-5)


def test_non_max_suppression_keeps_our_boxes():
    def inputs(seed, batch):
        draw = torch.Generator().manual_seed(seed)
        low = torch.randint(0, 30, (batch, 60, 2), generator=draw)
        boxes = torch.cat([low, low + torch.randint(0, 20, (batch, 60, 2), generator=draw)], dim=2).float()
        scores = torch.randint(-9, 9, (batch, 60), generator=draw).float()  # many equal ones
        scores[:, ::7] = -torch.inf
        return boxes, scores, torch.randint(0, 4, (batch, 60), generator=draw)

    trials = [inputs(seed, 1 + seed % 5) for seed in range(12)]
    for found, trial in zip(in_onnxruntime(Thin(), inputs(99, 2), *trials), trials, strict=True):
        for one, other in zip(found, Thin()(*trial), strict=True):
            assert np.array_equal(one, other)


def test_sorting_is_stable():
    trials = [(torch.randint(0, 4, (b, 50)).float(), torch.rand(b, 50) < 0.5) for b in (1, 3, 5)]
    for found, trial in zip(in_onnxruntime(Sort(), trials[1], *trials), trials, strict=True):
        for one, other in zip(found, Sort()(*trial), strict=True):
            assert np.array_equal(one, other)
