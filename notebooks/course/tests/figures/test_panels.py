"""Pictures and heat maps side by side."""

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from course.kit import figures
from course.kit.figures.indexed_png import indexed_png
from course.kit.figures.palette import GPU_COLOURS, luminance
from course.kit.figures.panels import STYLES, heat
from course.kit.figures.pictures import png
from frcnn_lite import data

SVG = "{http://www.w3.org/2000/svg}"
IMAGE = np.full((3, 64, 64), 200, dtype=np.uint8)
BOXES = torch.tensor([[4.0, 4, 24, 24], [40, 40, 60, 60]])


def drawn(figure, tag, **attributes):
    nodes = ElementTree.fromstring(figure.markup).iter(SVG + tag)
    return [node for node in nodes if all(node.get(name) == value for name, value in attributes.items())]


def words(figure):
    return [node.text for node in drawn(figure, "text")]


def test_a_heat_map_gets_darker_all_the_way_up():
    colours = heat(np.linspace(0, 1, 11)[None], 0, 1)
    shades = [luminance("#" + "".join(f"{c:02x}" for c in colours[:, 0, k])) for k in range(11)]
    assert shades == sorted(shades, reverse=True) and len(set(shades)) == 11
    assert heat([[-5.0, 7.0]], 0, 1)[:, 0, 0].tolist() == colours[:, 0, 0].tolist()  # beyond the ends: the end


def test_pictures_and_maps_are_told_with_their_boxes():
    shown = [
        figures.Panel(IMAGE, "the scene", {"true box": BOXES}),
        figures.Panel(torch.tensor([[0.0, 1.25], [0.5, -2]]), "a map\nof two rows", {"anchor": BOXES[:1]}),
    ]
    figure = figures.panels(shown, "Two panels")
    assert "the scene, 2 boxes marked true box" in figure.description
    assert "a map of two rows: 2 x 2 numbers from −2 to 1.2, 1 boxes marked anchor" in figure.description
    assert {"true box", "anchor", "a map", "of two rows", "−2", "1.2"} <= set(words(figure))
    assert len(drawn(figure, "image")) == 2
    colour, _ = STYLES["anchor"]
    assert len(drawn(figure, "rect", stroke=colour)) == 1 + 1  # and the legend


def test_boxes_are_placed_by_the_pixels_of_the_picture():
    maps = figures.Panel(torch.zeros(4, 4), "map", {"anchor": BOXES[:1]}, pixels=64)
    picture = figures.Panel(IMAGE, "picture", {"anchor": BOXES[:1]})
    one, other = (figures.panels([panel], "One", side=128) for panel in (maps, picture))
    colour, _ = STYLES["anchor"]
    (_, first), (_, second) = (drawn(figure, "rect", stroke=colour) for figure in (one, other))
    assert (first.get("x"), first.get("width")) == (second.get("x"), second.get("width")) == ("22", "40")


def test_a_map_of_a_few_values_names_them():
    kinds = {1: ("object", "#882255"), 0: ("background", "#dddddd"), -1: ("left out", "#ffffff")}
    figure = figures.panels([figures.Panel(torch.tensor([[1, 0], [0, -1]]), "labels", kinds=kinds)], "Labels")
    assert "labels: 1 object, 2 background, 1 left out" in figure.description
    assert {"object", "background", "left out"} <= set(words(figure))


def test_no_box_has_the_colour_of_a_gpu():
    assert not {colour for colour, _ in STYLES.values()} & set(GPU_COLOURS)


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([], "`shown` is empty"),
        ([figures.Panel(np.zeros((2, 4, 4)), "wrong")], r"'wrong' has shape \(2, 4, 4\)"),
        ([figures.Panel(IMAGE, "scene", {"box": BOXES})], "'box' is not a kind of box"),
    ],
)
def test_what_cannot_be_drawn_is_named(shown, message):
    with pytest.raises(ValueError, match=message):
        figures.panels(shown, "Title")


def decoded(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))


def test_a_picture_of_few_colours_keeps_them():
    few = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 0, 0]]], dtype=np.uint8)
    assert decoded(indexed_png(few)).tolist() == few.tolist()
    one = np.full((3, 5, 3), 7, dtype=np.uint8)
    assert decoded(indexed_png(one)).tolist() == one.tolist()


def test_a_picture_of_many_colours_stays_close():
    scene = np.moveaxis(data.DigitScenes("test", 20)[19].image.numpy(), 0, 2)
    encoded = indexed_png(scene)
    assert len(np.unique(scene.reshape(-1, 3), axis=0)) > 256
    assert np.abs(decoded(encoded).astype(int) - scene).mean() < 4
    assert len(encoded) < len(png(scene)) / 2
