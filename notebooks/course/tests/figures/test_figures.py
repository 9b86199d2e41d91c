"""Curves, pictures and sheets over their states."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from course.kit import figures
from course.kit.figures.pictures import png

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def image(seed, height=20, width=30):
    return np.random.default_rng(seed).integers(0, 256, (3, height, width), dtype=np.uint8)


def test_curves_name_their_lines_and_stay_in_the_plot():
    figure = figures.curves({"one": [3.0, 2.0, 1.0], "two": [3.0, 2.0, 1.01], "RPN": [0.5]}, "Loss", every=10)
    assert {"one", "two", "RPN", "Loss", "step"} <= set(texts(figure))
    assert "one goes from 3.00 to 1.00, lowest 1.00" in figure.description
    heights = [float(node.get("y")) for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]
    assert all(0 < y < 300 for y in heights)


def test_curves_of_steps_jump_and_count_from_the_first():
    figure = figures.curves({"rate": [0.02, 0.02, 0.1]}, "Rate", x_label="epoch", first=1, steps=True)
    (line,) = ElementTree.fromstring(figure.markup).iter(SVG + "polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(points))
    assert texts(figure).count("0") == 1 and "over 3 epochs" in figure.description  # of the y axis


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [1.0, float("nan")]}, {str(k): [1.0] for k in range(9)}])
def test_curves_refuse_what_they_cannot_draw(series):
    with pytest.raises(ValueError, match="series"):
        figures.curves(series, "Loss")


@pytest.mark.parametrize("shape", [(1, 1, 3), (20, 30, 3), (200, 150, 3)])
def test_png_survives_a_real_decoder(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(pixels)))), pixels)


def test_png_refuses_floats():
    with pytest.raises(ValueError, match="uint8"):
        png(np.zeros((4, 4, 3)))


def test_scene_sheet_embeds_the_pixels_and_skips_padding():
    images, boxes = [image(0), image(1)], [[[1, 2, 8, 9], [0, 0, 0, 0]], [[3, 3, 9, 9], [10, 0, 20, 9]]]
    figure = figures.scene_sheet(images, boxes, [[7, -1], [3, 4]])
    uris = re.findall(r"base64,([^\"]+)", figure.markup)
    decoded = [np.asarray(Image.open(io.BytesIO(base64.b64decode(uri)))) for uri in uris]
    assert all(np.array_equal(np.moveaxis(d, -1, 0), i) for d, i in zip(decoded, images, strict=True))
    assert [t for t in texts(figure) if t.isdigit()] == ["7", "3", "4"]
    assert "picture 1: 7; picture 2: 3, 4." in figure.description


def test_scene_sheet_refuses_unequal_lists():
    with pytest.raises(ValueError, match="1 images, 0 boxes and 1 labels"):
        figures.scene_sheet([image(0)], [], [[1]])


def test_detections_are_judged_once_per_true_box():
    truth = [([[0, 0, 10, 10], [15, 0, 25, 10], [0, 0, 0, 0]], [1, 2, -1])]
    found = [([[0, 0, 10, 9], [0, 0, 10, 10], [15, 0, 25, 10], [3, 3, 4, 4]], [0.9, 0.8, 0.7, 0.1], [1, 1, 3, 1])]
    figure = figures.detections([image(0)], found, truth)
    assert figure.description == "picture 1: 1 right, 2 wrong, 1 missed."


def test_detections_of_an_empty_picture():
    nothing = (np.zeros((0, 4)), np.zeros(0, dtype=int))
    figure = figures.detections([image(0)], [(nothing[0], np.zeros(0), nothing[1])], [nothing])
    assert figure.description == "picture 1: 0 right, 0 wrong, 0 missed."
