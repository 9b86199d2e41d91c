"""The file that runs an exported detector, on a small graph in the form of one: onnxruntime, and no torch."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from frcnn_lite.export.onnx_detector import OnnxDetector

BOXES = np.array([[[0, 0, 4, 4], [1, 1, 3, 3]]], np.float32)  # of one picture
LABELS = np.array([[1, 0]])
VALID = np.array([[True, False]])


@pytest.fixture
def write(tmp_path):
    """A function that writes a graph: the first score is the brightest value of the picture, all else is fixed."""
    onnx = pytest.importorskip("onnx", reason="it needs onnx, to write a graph")
    pytest.importorskip("onnxruntime", reason="it needs onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    def write(metadata):
        image = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 6, 8])
        kinds = {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT}
        kinds |= {"labels": TensorProto.INT64, "valid": TensorProto.BOOL}
        fixed = {"boxes": BOXES, "labels": LABELS, "valid": VALID, "second": np.array([0.25], np.float32)}
        nodes = [helper.make_node("Identity", [f"fixed {name}"], [name]) for name in ("boxes", "labels", "valid")]
        nodes += [
            helper.make_node("ReduceMax", ["images"], ["brightest"], keepdims=0),
            helper.make_node("Reshape", ["brightest", "one"], ["first"]),
            helper.make_node("Concat", ["first", "fixed second"], ["row"], axis=0),
            helper.make_node("Reshape", ["row", "shape"], ["scores"]),
        ]
        constants = [numpy_helper.from_array(value, f"fixed {name}") for name, value in fixed.items()]
        constants += [numpy_helper.from_array(np.array(s), n) for n, s in (("one", [1]), ("shape", [1, 2]))]
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
        graph = helper.make_graph(nodes, "detector", [image], outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
        onnx.save(model, tmp_path / "detector.onnx")
        return tmp_path / "detector.onnx"

    return write


def test_pictures_become_what_was_found_in_them(write):
    detector = OnnxDetector(write({"class_names": ["cat", "dog"], "image_size": [6, 8]}))
    assert detector.class_names == ["cat", "dog"] and detector.image_size == (6, 8)
    picture = np.zeros((1, 6, 8, 3), np.uint8)
    picture[0, 2, 5, 1] = 51
    (found,) = detector(picture)
    assert found.names == ["dog"] and found.boxes.tolist() == [[0, 0, 4, 4]]  # the second is not valid
    assert found.scores.tolist() == pytest.approx([0.2])  # 51 of 255


def test_without_names_a_class_is_its_number(write):
    detector = OnnxDetector(write({"class_names": [], "image_size": [6, 8]}))
    assert detector(np.zeros((1, 6, 8, 3), np.uint8))[0].names == ["1"]


@pytest.mark.parametrize("picture", [np.zeros((1, 8, 6, 3), np.uint8), np.zeros((1, 6, 8, 3), np.float32)])
def test_other_pictures_are_refused(write, picture):
    detector = OnnxDetector(write({"class_names": [], "image_size": [6, 8]}))
    with pytest.raises(ValueError, match=r"must be \(B, 6, 8, 3\) uint8, got "):
        detector(picture)


def test_a_foreign_file_is_refused(write):
    with pytest.raises(ValueError, match=r"no metadata \['class_names'\]; it was not written by export_onnx"):
        OnnxDetector(write({"image_size": [6, 8]}))


@pytest.mark.parametrize("form", ["file", "picture", "array"])
def test_a_photograph_is_shown_as_in_training_and_gets_boxes_in_its_own_pixels(write, tmp_path, monkeypatch, form):
    """40 x 24 pixels on a canvas of 8 x 6: a fifth of its size, 4.8 rows and so 5, with a row of grey below."""
    letterbox = pytest.importorskip("frcnn_lite.data.letterbox")
    detector = OnnxDetector(write({"class_names": ["cat", "dog"], "image_size": [6, 8]}))
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    shown, run = [], detector.run
    monkeypatch.setattr(detector, "run", lambda images: [shown.append(images), run(images)][1])
    found = detector.find({"file": tmp_path / "a.png", "picture": Image.fromarray(pixels), "array": pixels}[form])
    assert found.names == ["dog"] and found.boxes[0].tolist() == pytest.approx([0, 0, 20, 4 * 24 / 5])
    as_trained = letterbox.Letterbox(6, 8).place(torch.from_numpy(pixels).permute(2, 0, 1)).numpy()
    assert np.abs(shown[0][0] * 255 - as_trained).max() < 1.5  # rounded once more or less


def test_what_is_found_on_the_grey_is_not_in_the_picture(write):
    detector = OnnxDetector(write({"class_names": ["cat", "dog"], "image_size": [6, 8]}))
    detector.run = lambda images: [BOXES + np.float32([0, 5, 0, 2]), np.ones((1, 2), np.float32), LABELS, VALID]
    assert detector.find(np.zeros((24, 40, 3), np.uint8)).names == []
